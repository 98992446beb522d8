"""An index built on disk from any iterable, in as much memory as it is given.

(1) Documents are gathered part by part: a part is analysed in memory and committed to the index
folder ``building``, with how many documents were read so far. (2) The parts are merged into one
segment, whose arrays are written as they are merged. What each step has written tells that it
need not be done again, so a build that was killed goes on where it was.
"""
