import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.rocketmq.filter.FilterFactory;
import org.apache.rocketmq.filter.expression.EvaluationContext;
import org.apache.rocketmq.filter.expression.Expression;

/**
 * What RocketMQ's own SQL92 filter says. Each line of the input is an expression and property names and values by
 * turns, separated by tabs, with \n, \t and \\ written as such. Each line of the output is "refused", "true" or "false".
 */
public class SelectorOracle {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(judge(line.split("\t", -1)));
        }
        out.flush();
    }

    private static String judge(String[] parts) {
        Expression compiled;
        try {
            compiled = FilterFactory.INSTANCE.get("SQL92").compile(plain(parts[0]));
        } catch (Throwable refusal) {
            return "refused";
        }
        Map<String, Object> properties = new HashMap<>();
        for (int i = 1; i + 1 < parts.length; i += 2) {
            properties.put(plain(parts[i]), plain(parts[i + 1]));
        }
        try {
            return String.valueOf(Boolean.TRUE.equals(compiled.evaluate(new EvaluationContext() {
                @Override
                public Object get(String name) {
                    return properties.get(name);
                }

                @Override
                public Map<String, Object> keyValues() {
                    return properties;
                }
            })));
        } catch (Throwable incomparable) {
            return "false";
        }
    }

    private static String plain(String text) {
        StringBuilder result = new StringBuilder();
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '\\') {
                i++;
                c = text.charAt(i) == 'n' ? '\n' : text.charAt(i) == 't' ? '\t' : text.charAt(i);
            }
            result.append(c);
        }
        return result.toString();
    }
}
