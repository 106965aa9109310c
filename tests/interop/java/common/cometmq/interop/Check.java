package cometmq.interop;

import java.util.Objects;

/** Assertions that say what was expected and what was found; waits that end with the condition, not with a clock. */
final class Check {
    /** Generous, because a busy machine is no fault of the server; only a failing run ever waits this long. */
    static final long PATIENCE_MS = 30_000;

    private static final long POLL_MS = 20;

    private Check() {}

    /** Tells how far a condition is: null when it holds, otherwise what is still missing. */
    interface Probe {
        String missing() throws Exception;
    }

    /** Work that a server is expected to refuse. */
    interface Attempt {
        void run() throws Exception;
    }

    static void that(boolean holds, String expectation) {
        if (!holds) {
            throw new AssertionError("expected: " + expectation);
        }
    }

    static void equal(Object expected, Object found, String what) {
        if (!Objects.equals(expected, found)) {
            throw new AssertionError(what + ": expected <" + expected + ">, found <" + found + ">");
        }
    }

    static <E extends Exception> E refused(Class<E> type, String what, Attempt attempt) throws Exception {
        try {
            attempt.run();
        } catch (Exception e) {
            if (type.isInstance(e)) {
                return type.cast(e);
            }
            throw e;
        }
        throw new AssertionError(what + ": expected " + type.getSimpleName() + ", but it was accepted");
    }

    static void eventually(String expectation, Probe probe) throws InterruptedException {
        within(PATIENCE_MS, expectation, probe);
    }

    /** Waits until the probe finds nothing missing. What it throws counts as "not yet" until time is over. */
    static void within(long limitMs, String expectation, Probe probe) throws InterruptedException {
        long deadline = System.nanoTime() + limitMs * 1_000_000;
        while (true) {
            String missing;
            Exception cause = null;
            try {
                missing = probe.missing();
            } catch (InterruptedException e) {
                throw e;
            } catch (Exception e) {
                missing = e.toString();
                cause = e;
            }
            if (missing == null) {
                return;
            }
            if (System.nanoTime() > deadline) {
                String report = "expected within " + limitMs + " ms: " + expectation + "; last seen: " + missing;
                throw new AssertionError(report, cause);
            }
            Thread.sleep(POLL_MS);
        }
    }
}
