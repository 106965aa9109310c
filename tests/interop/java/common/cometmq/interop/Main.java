package cometmq.interop;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Drives servers through the real Java client and prints one line for each scenario: {@code ok NAME} or
 * {@code FAILED NAME reason}. Exit code 0 when all were ok, 1 when one failed, 2 for a wrong call.
 *
 * <pre>
 * Main scenarios      NAME_SERVER PREFIX [NAME...]   everything that needs no restart, or the named ones
 * Main before-restart NAME_SERVER PREFIX             leaves work behind; prints "waiting", reads a line, goes on
 * Main after-restart  NAME_SERVER PREFIX             finds the work left behind
 * Main guarded        NAME_SERVER PREFIX [NAME...]   the same and {@link Beginnings}, which says what broker it needs
 * Main expressions    NAME_SERVER PREFIX [NAME...]   subscriptions by SQL92 expressions
 * Main later          NAME_SERVER PREFIX [NAME...]   delays, retries, requests; {@link Delays} says what broker it needs
 * Main transactions   NAME_SERVER PREFIX [NAME...]   {@link Transactions}, which says what broker it needs
 * Main replays        NAME_SERVER PREFIX [NAME...]   {@link Replays}: positions that an operator moves, copies and reads
 * </pre>
 */
public final class Main {
    /** A scenario ends normally, or throws what it did not like. */
    interface Scenario {
        void run(Cluster cluster) throws Exception;
    }

    /** Modes whose scenarios wait most of their time, and do not disturb each other. */
    private static final Set<String> SIDE_BY_SIDE = Set.of("later", "transactions", "replays");

    private static final int SCENARIOS_AT_ONCE = 4;

    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private Main() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 3) {
            usage();
        }
        Map<String, Scenario> chosen = switch (arguments[0]) {
            case "scenarios" -> scenarios();
            case "before-restart" -> Restart.before(OUT);
            case "after-restart" -> Restart.after();
            case "guarded" -> guarded();
            case "expressions" -> Expressions.all();
            case "later" -> later();
            case "transactions" -> transactions();
            case "replays" -> replays();
            default -> usage();
        };
        if (arguments.length > 3) {
            chosen.keySet().retainAll(List.of(arguments).subList(3, arguments.length));
        }
        Cluster cluster = new Cluster(arguments[1], arguments[2]);
        boolean isFine = SIDE_BY_SIDE.contains(arguments[0]) ? runAllAtOnce(chosen, cluster) : runInTurn(chosen, cluster);
        cluster.shutdown();
        // Some threads of the client are no daemons and outlive its shutdown.
        System.exit(isFine ? 0 : 1);
    }

    private static boolean runInTurn(Map<String, Scenario> chosen, Cluster cluster) {
        boolean isFine = true;
        for (Map.Entry<String, Scenario> entry : chosen.entrySet()) {
            isFine &= run(entry.getKey(), entry.getValue(), cluster);
        }
        return isFine;
    }

    private static boolean runAllAtOnce(Map<String, Scenario> chosen, Cluster cluster) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(SCENARIOS_AT_ONCE);
        List<Future<Boolean>> outcomes = new ArrayList<>();
        chosen.forEach((name, scenario) -> outcomes.add(pool.submit(() -> run(name, scenario, cluster.share()))));
        boolean isFine = true;
        for (Future<Boolean> outcome : outcomes) {
            isFine &= outcome.get();
        }
        pool.shutdown();
        return isFine;
    }

    private static Map<String, Scenario> scenarios() {
        Map<String, Scenario> all = new LinkedHashMap<>();
        Topics.addTo(all);
        Sends.addTo(all);
        Pushes.addTo(all);
        Pulls.addTo(all);
        Queries.addTo(all);
        Operations.addTo(all);
        return all;
    }

    private static Map<String, Scenario> guarded() {
        Map<String, Scenario> all = scenarios();
        Beginnings.addTo(all);
        return all;
    }

    private static Map<String, Scenario> later() {
        Map<String, Scenario> all = new LinkedHashMap<>();
        Delays.addTo(all);
        Retries.addTo(all);
        Requests.addTo(all);
        return all;
    }

    private static Map<String, Scenario> transactions() {
        Map<String, Scenario> all = new LinkedHashMap<>();
        Transactions.addTo(all);
        return all;
    }

    private static Map<String, Scenario> replays() {
        Map<String, Scenario> all = new LinkedHashMap<>();
        Replays.addTo(all);
        return all;
    }

    private static boolean run(String name, Scenario scenario, Cluster cluster) {
        long started = System.nanoTime();
        try (cluster) {
            scenario.run(cluster);
        } catch (Exception | AssertionError e) {
            // One line for the driver, the whole story on the other stream.
            OUT.println("FAILED " + name + " " + e.toString().replaceAll("\\s+", " "));
            e.printStackTrace();
            return false;
        }
        OUT.println("ok " + name + " " + (System.nanoTime() - started) / 1_000_000 + " ms");
        return true;
    }

    private static Map<String, Scenario> usage() {
        System.err.println("usage: Main scenarios|before-restart|after-restart|guarded|expressions|later|transactions|replays"
            + " NAME_SERVER PREFIX [NAME...]");
        System.exit(2);
        throw new IllegalStateException("unreachable");
    }
}
