// The Java interface as Kotlin sees it: KotlinTests DEMO LANGUAGE [DEVICE]. `cargo xtask java --check` compiles and runs it.
import java.io.File
import org.halite.CancelToken
import org.halite.Generation
import org.halite.GeneratorOptions
import org.halite.HaliteException
import org.halite.Message
import org.halite.RunOptions
import org.halite.Session
import org.halite.Stop
import org.halite.Tensor

fun main(args: Array<String>) {
    val (demo, language) = args.map(::File)
    val device = args.getOrElse(2) { "vulkan" }
    digit(demo, device)
    text(language, device)
    failures(device)
    println("Kotlin: all passed")
}

private fun digit(demo: File, device: String) {
    val bytes = File(demo, "sample_7.npy").readBytes().takeLast(4 * 256).toByteArray()
    val pixels = FloatArray(256)
    java.nio.ByteBuffer.wrap(bytes).order(java.nio.ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(pixels)
    Session.builder().model(File(demo, "digits.onnx")).device(device).withoutCache().build().use { session ->
        val input = session.inputs().single()
        // What is never null needs no question mark.
        val name: String = input.name()
        val shape: List<String> = input.shape()
        check(name == "picture" && shape.size == 4) { "$name $shape" }
        Tensor.of(pixels, 1, 1, 16, 16).use { picture ->
            session.run(mapOf(name to picture), RunOptions().timeoutMillis(60_000)).use { outputs ->
                val probabilities: FloatArray = outputs["probabilities"].floats()
                check(probabilities.indices.maxByOrNull { probabilities[it] } == 7)
            }
        }
    }
}

private fun text(language: File, device: String) {
    Session.builder().model(File(language, "gemma3.gguf")).device(device).withoutCache()
        .generator(GeneratorOptions().context(64)).use { generator ->
            generator.sequence().use { sequence ->
                val prompt = generator.chat(listOf(Message("user", "in the")))
                sequence.prompt(*generator.tokenize(prompt, true))
                val text = StringBuilder()
                val stop = sequence.generate(Generation().greedy().most(6), { piece -> text.append(piece); true }, null)
                check(stop == Stop.LENGTH || stop == Stop.END) { "$stop" }
                check(sequence.tokens().size > 6)
                val json = StringBuilder()
                sequence.generate(Generation().most(40).jsonSchema("""{"enum": [12]}"""), { piece -> json.append(piece); true }, null)
                check(json.trim() == "12") { "$json" }
            }
        }
}

private fun failures(device: String) {
    CancelToken().use { token ->
        token.cancel()
        val failed = runCatching {
            Session.builder().model(File("no-such-model.onnx")).device(device).build(RunOptions().cancel(token))
        }.exceptionOrNull()
        check(failed is HaliteException && failed.kind() in setOf(HaliteException.Kind.CANCELLED, HaliteException.Kind.NOT_FOUND))
    }
}
