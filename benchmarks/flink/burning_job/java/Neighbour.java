import java.io.IOException;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * Hashes on every processor until its standard input ends, as the job does. Two processors may be threads of one core; then a
 * record takes up to twice the CPU time while the other one is busy, and the cost of a record would depend on which
 * TaskManagers happen to run at the same time.
 */
public final class Neighbour {
    public static void main(String[] args) throws IOException {
        for (int i = 0; i < Runtime.getRuntime().availableProcessors(); i++) {
            Thread thread = new Thread(Neighbour::hash);
            thread.setDaemon(true);
            thread.start();
        }
        while (System.in.read() >= 0) {
            // Only the end of the input matters.
        }
    }

    private static void hash() {
        try {
            MessageDigest digest = MessageDigest.getInstance("SHA-256");
            byte[] hash = new byte[digest.getDigestLength()];
            while (true) {
                hash = digest.digest(hash);
            }
        } catch (NoSuchAlgorithmException missing) {
            throw new IllegalStateException(missing);
        }
    }
}
