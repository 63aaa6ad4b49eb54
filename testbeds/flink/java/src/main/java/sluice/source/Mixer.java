package sluice.source;

/** Random numbers that depend only on the event, so that runs with any number of tasks emit the same events. */
public final class Mixer {
    private static final long GAMMA = 0x9E3779B97F4A7C15L;

    private long state;

    /** Restart the sequence for one event. */
    public void reset(long seed, long index) {
        state = mixed(seed + index * GAMMA);
    }

    public long nextLong() {
        state += GAMMA;
        return mixed(state);
    }

    /** Uniform from 0 up to, but not including, bound. */
    public int nextInt(int bound) {
        return (int) (((nextLong() >>> 32) * bound) >>> 32);
    }

    /** Uniform in [0, 1). */
    public double nextDouble() {
        return (nextLong() >>> 11) * 0x1.0p-53;
    }

    /** The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): every bit depends on every bit. */
    public static long mixed(long bits) {
        long z = bits;
        z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
        z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
        return z ^ (z >>> 31);
    }
}
