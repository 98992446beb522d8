"""What tests share: references, strategies, forged folders, ways to run commands."""
