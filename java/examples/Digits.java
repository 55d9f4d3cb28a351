import org.halite.Outputs;
import org.halite.Session;
import org.halite.Tensor;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.util.Collections;

/**
 * Reads a picture of a digit: {@code java -cp lib/halite.jar:. -Djava.library.path=lib Digits digits.onnx sample_7.npy [DEVICE]}. The class
 * path has the package's {@code halite.jar}.
 */
public final class Digits {
    private static final int PIXELS = 16 * 16;

    private Digits() {}

    public static void main(String[] args) throws IOException {
        if (args.length < 2) {
            System.err.println("usage: Digits MODEL PICTURE.npy [DEVICE]");
            System.exit(2);
        }
        // The numbers are the end of the file.
        byte[] file = Files.readAllBytes(new File(args[1]).toPath());
        ByteBuffer numbers = ByteBuffer.wrap(file, file.length - 4 * PIXELS, 4 * PIXELS).order(ByteOrder.LITTLE_ENDIAN);
        float[] pixels = new float[PIXELS];
        numbers.asFloatBuffer().get(pixels);

        Session.Builder builder = Session.builder().model(new File(args[0])).device(args.length > 2 ? args[2] : "vulkan");
        try (Session session = builder.build();
                Tensor picture = Tensor.of(pixels, 1, 1, 16, 16);
                Outputs outputs = session.run(Collections.singletonMap("picture", picture))) {
            float[] probabilities = outputs.get("probabilities").floats();
            int best = 0;
            for (int i = 1; i < probabilities.length; i += 1) {
                best = probabilities[i] > probabilities[best] ? i : best;
            }
            System.out.println("This is a " + best + ", by " + session.device() + ".");
        }
    }
}
