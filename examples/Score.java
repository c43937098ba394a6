// BERTScore in Java: F of each pair of lines of two files, by a bundle with a scoring graph and the fast tokenizer.
//
// Needs com.microsoft.onnxruntime:onnxruntime and ai.djl.huggingface:tokenizers; docs/any_language.md has the rest.
//     java -cp JARS Score.java BUNDLE CANDIDATES REFERENCES

import ai.djl.huggingface.tokenizers.Encoding;
import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;

class Score {
    public static void main(String[] args) throws Exception {
        var bundle = Path.of(args[0]);
        var tokenizer = HuggingFaceTokenizer.builder().optTokenizerPath(bundle.resolve("tokenizer.json"))
                .optTruncation(true).optMaxLength(512)  // the manifest's max_length
                .optPadding(true).build();
        var environment = OrtEnvironment.getEnvironment();
        var inputs = new HashMap<String, OnnxTensor>();
        for (int side = 0; side < 2; side++) {
            var name = side == 0 ? "candidate" : "reference";
            var texts = Files.readAllLines(Path.of(args[1 + side])).stream().map(String::strip).toList();
            Encoding[] encoded = tokenizer.batchEncode(texts);
            var ids = Arrays.stream(encoded).map(Encoding::getIds).toArray(long[][]::new);
            var mask = Arrays.stream(encoded).map(Encoding::getAttentionMask).toArray(long[][]::new);
            inputs.put(name + "_ids", OnnxTensor.createTensor(environment, ids));
            inputs.put(name + "_mask", OnnxTensor.createTensor(environment, mask));
        }
        try (var session = environment.createSession(bundle.resolve("scoring.onnx").toString());
                var scores = session.run(inputs)) {
            System.out.println(Arrays.toString((float[]) scores.get("f1").get().getValue()));
        }
    }
}
