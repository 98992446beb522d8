import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;

/** Writes the terms of Lucene's analyzer of a language, of a text a line: language, texts, terms. */
public class LuceneTerms {
    private static final Map<String, String> ANALYZERS = Map.of(
        "arabic", "ar.ArabicAnalyzer",
        "chinese", "cjk.CJKAnalyzer",
        "english", "en.EnglishAnalyzer",
        "french", "fr.FrenchAnalyzer",
        "german", "de.GermanAnalyzer",
        "japanese", "ja.JapaneseAnalyzer",
        "russian", "ru.RussianAnalyzer",
        "spanish", "es.SpanishAnalyzer",
        "thai", "th.ThaiAnalyzer");

    public static void main(String[] arguments) throws Exception {
        String name = "org.apache.lucene.analysis." + ANALYZERS.get(arguments[0]);
        Analyzer analyzer = (Analyzer) Class.forName(name).getDeclaredConstructor().newInstance();
        List<String> lines = new ArrayList<>();
        for (String text : Files.readString(Path.of(arguments[1])).split("\n", -1)) {
            List<String> terms = new ArrayList<>();
            try (TokenStream stream = analyzer.tokenStream("text", text)) {
                CharTermAttribute term = stream.addAttribute(CharTermAttribute.class);
                stream.reset();
                while (stream.incrementToken()) {
                    terms.add(term.toString().replace(' ', '_'));
                }
                stream.end();
            }
            lines.add(String.join(" ", terms));
        }
        Files.writeString(Path.of(arguments[2]), String.join("\n", lines));
    }
}
