"""Makes small tokenizers of the kinds that models have, and the tokens of texts by the libraries that the kinds come from.

    python3 text/tests/made_tokenizers.py text/tests/data                  # the fixtures
    python3 text/tests/made_tokenizers.py /tmp/many --lines 4000 --vocabulary 4000   # many texts, for a campaign

Needs PyPI tokenizers, sentencepiece and tiktoken, and reads no network: the tokenizers are trained on the sources of Python's
standard library (the fixtures on some pages of this repository) and on the texts below. For each tokenizer there is a file that Halite reads, and a list of cases beside it:
the text, the tokens with names of control tokens as text (`plain`) and as tokens (`control`), the whole result with what is
written before and behind (`whole`, for the first), and the decoded text of `control` (`decoded`).
"""

import argparse
import base64
import json
import pathlib
import random
import re
import unicodedata

import sentencepiece
import tiktoken
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Regex

TEXTS = [
    "Hello, world!", "  two  spaces   and a tab\t\tend  ", "a\n\n\nb\r\n  c\n", "It's 12345 o'clock; we'll see, I'D say.",
    "def f(x):\n    return x ** 2  # square\n", "naïve café — “quotes” … and ﬁ ligatures, ½ ﾊﾝｶｸ ﾀﾞ", "Ünïcödé e\u0301 o\u0308 ß ẞ ſ İ ı Σίσυφος",
    "日本語のテキストと中文字符。한국어 텍스트", "Привет, мир! Ещё раз", "مرحبا بالعالم ١٢٣ שלום עולם", "नमस्ते दुनिया ไทย ภาษา தமிழ்",
    "😀 emoji 👨‍👩‍👧‍👦 family 🇩🇪 flag ✌🏽", "zero\u200bwidth\u200djoin\ufeffbom\u00adsoft\u00a0nbsp\u3000wide\u2028line\u0085nel",
    "<s>[INST] hi [/INST]</s><|im_start|>user\nhey<|im_end|>\n<mask> x", "<0x0A> ▁▁ Ġ Ċ <unk> [CLS] [SEP] ##ing",
    "a", " ", "\n", "", "\u0000\u0001\u007f", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "HTTPServer XMLHttpRequest fooBar FOO_BAR camelCase2Go", "3.14159e-10 0xFF 1,000,000 ٣٤ ² ⅷ", "!!!??? ... --- === /* */ ~~~ $^`|+<>",
    "\t\tif (a<b&&c>d) { return \"x\\n\"; }\n\n\n\t}", "word" * 40, "tail spaces    ", "    head spaces", "x\u0301\u0302\u0303y", "\U0001F9FF\U00013000𝔘𝔫𝔦",
    "user text with <extra_0> in it and sep<extra_0>glued <sep_token>  after",
]
SPECIALS = ["<s>", "</s>", "<|im_start|>", "<|im_end|>"]


def corpus(flags):
    """Lines to train on and to choose cases from: this repository's pages, for many texts Python's sources, and many scripts."""
    here = pathlib.Path(__file__).parent
    lines = [line for path in ["tokenizer.rs", "pattern.rs", "normalize.rs"] for line in (here.parent / "src" / path).read_text().splitlines()]
    lines += (here.parent.parent / "CONTRIBUTING.md").read_text().splitlines()
    folder = pathlib.Path(json.__file__).parent.parent
    if flags.lines <= 500:
        return [line for line in lines if line.strip()] + TEXTS * 20
    for name in ["argparse", "ast", "inspect", "typing", "tarfile", "doctest", "email/header", "idlelib/help", "html/entities", "unittest/mock", "test/test_unicode_identifiers"]:
        path = folder / f"{name}.py"
        if path.is_file():
            lines += path.read_text().splitlines()
    return [line for line in lines if line.strip()] + TEXTS * 20


def mixed(random_, lines):
    """A text that nobody writes: parts of lines, joined by what is hard."""
    joints = ["", " ", "  ", "\n", "\n\n", "\t", "\u3000", "▁", "'s", "1234", "é", "e\u0301", "中", "😀", "<s>", "<|im_end|>", "\u200b", "ﬁ", "\r\n", "<extra_0>", " \n ", "İ", "ｶﾞ", "ꙮ", "\u0378"]
    parts = []
    for _ in range(random_.randint(1, 6)):
        line = random_.choice(lines)
        start = random_.randrange(len(line) + 1)
        parts += [line[start:start + random_.randint(0, 30)], random_.choice(joints)]
        if random_.random() < 0.2:
            # Characters of an old Unicode: the libraries' tables do not know of newer ones what they are.
            parts.append("".join(c for c in (chr(random_.choice([random_.randrange(1, 0x250), random_.randrange(0x250, 0x3000), random_.randrange(0x3000, 0xD000), random_.randrange(0xF900, 0x11000), random_.randrange(0x1F000, 0x1FB00)])) for _ in range(6)) if unicodedata.ucd_3_2_0.category(c) != "Cn"))
    return "".join(parts)


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
GPT4O = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def byte_level(lines, size, pattern, first=None, before=(), normalizer=None, ignore_merges=False, prefix_space=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    own = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space, use_regex=pattern is None)
    steps = [*before]
    if pattern:
        steps.append(pre_tokenizers.Split(Regex(pattern), "isolated"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*steps, own]) if steps else own
    if normalizer:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIALS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    if first:
        template = processors.TemplateProcessing(single=f"{first} $A", pair=f"{first} $A {first} $B", special_tokens=[(first, tokenizer.token_to_id(first))])
        tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    tokenizer.add_tokens([AddedToken("<extra_0>", normalized=False, special=False)])
    return tokenizer


def fallback(lines, size, style):
    """Byte pairs with bytes for what is no token, as Llama 2, Mistral, Gemma and Phi-3 have them."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    replace = normalizers.Replace(" ", "▁")
    if style == "mistral":
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    elif style == "gemma":
        tokenizer.normalizer = replace
        tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    else:
        tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), replace])
    training = Tokenizer(models.BPE())
    training.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), replace])
    training.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>", *SPECIALS, *bytes_], limit_alphabet=150, show_progress=False)
    training.train_from_iterator(lines, trainer)
    data = json.loads(training.to_str())
    tokenizer_data = json.loads(tokenizer.to_str())
    tokenizer_data["model"].update(vocab=data["model"]["vocab"], merges=data["model"]["merges"])
    tokenizer = Tokenizer.from_str(json.dumps(tokenizer_data))
    strips = style == "phi3"
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True, rstrip=strips and text != "<s>") for text in ["<unk>", *SPECIALS]])
    tokenizer.add_tokens([AddedToken("<extra_0>", normalized=style == "phi3", special=False, lstrip=style == "mistral")])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps if style == "gemma" else [*steps, decoders.Strip(" ", 1, 0)])
    begin = tokenizer.token_to_id("<s>")
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", begin)])
    return tokenizer


def bert(lines, size, cased):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=not cased, strip_accents=None if not cased else False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], limit_alphabet=300, show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    find = tokenizer.token_to_id
    if cased:
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", find("[SEP]")), ("[CLS]", find("[CLS]")))
    else:
        tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", find("[CLS]")), ("[SEP]", find("[SEP]"))])
    tokenizer.decoder = decoders.WordPiece(cleanup=not cased)
    return tokenizer


def unigram(lines, size, model, style):
    """As T5 and XLM-R have it: trained by SentencePiece, converted."""
    data = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = [(data.id_to_piece(i), data.get_score(i)) for i in range(data.get_piece_size())]
    tokenizer = Tokenizer(models.Unigram(pieces, data.unk_id(), False))
    steps = []
    if charsmap := charsmap_of(model):
        steps.append(normalizers.Precompiled(charsmap))
    if style == "xlmr":
        steps += [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")]
    tokenizer.normalizer = normalizers.Sequence(steps)
    metaspace = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.pre_tokenizer = metaspace if style == "xlmr" else pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    tokenizer.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken("<unk>", normalized=False, special=True), AddedToken("</s>", normalized=False, special=True), AddedToken("<mask>", normalized=True, special=True, lstrip=True)])
    tokenizer.add_tokens([AddedToken("<extra_0>", single_word=True, special=False)])
    end = tokenizer.token_to_id("</s>")
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", end)])
    return tokenizer


def charsmap_of(model):
    from sentencepiece import sentencepiece_model_pb2 as pb
    proto = pb.ModelProto()
    proto.ParseFromString(model)
    return proto.normalizer_spec.precompiled_charsmap


def others(lines, size):
    """Parts that the models above do not have."""
    clip = Tokenizer(models.BPE(unk_token="<|im_end|>", end_of_word_suffix="</w>", fuse_unk=False))
    clip.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    clip.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    clip.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIALS, end_of_word_suffix="</w>", initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    clip.decoder = decoders.BPEDecoder(suffix="</w>")
    words = Tokenizer(models.WordLevel(unk_token="<s>"))
    words.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(), normalizers.Strip()])
    words.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation("contiguous")])
    words.train_from_iterator(lines, trainers.WordLevelTrainer(vocab_size=size, special_tokens=SPECIALS, show_progress=False))
    prefixed = Tokenizer(models.BPE(unk_token="<s>", continuing_subword_prefix="##", fuse_unk=False))
    prefixed.normalizer = normalizers.NFKC()
    prefixed.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(), pre_tokenizers.Punctuation("merged_with_next")])
    prefixed.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIALS, continuing_subword_prefix="##", limit_alphabet=200, show_progress=False))
    prefixed.decoder = decoders.WordPiece()
    return {"clip": clip, "words": words, "prefixed": prefixed}


def pieces(lines, size, **options):
    """A model of SentencePiece."""
    import io
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter([line for line in lines if "\0" not in line]), model_writer=out, vocab_size=size, minloglevel=2, hard_vocab_limit=False, character_coverage=0.99, **options)
    return out.getvalue()


def rules(flags, few):
    """What a model of SentencePiece does to texts: its own list for many texts, a short one for the fixtures, or nothing."""
    if not few:
        return {"normalization_rule_name": "identity"}
    if flags.lines > 500:
        return {"normalization_rule_name": "nmt_nfkc"}
    wide = [chr(code) for code in [*range(0xFF01, 0xFF5F), *range(0xFF66, 0xFFA0), 0xA0, 0x3000, 0xBD, 0xB2, 0xFB01, 0x2026, 0x2177]]
    sources = {c: unicodedata.normalize("NFKC", c) for c in wide} | {c: " " for c in "\t\n\r\u2028\u0085"} | {c: "" for c in "\u00ad\ufeff\u200b"}
    sources |= {unicodedata.normalize("NFD", c): c for c in "éèêïöüñçÜÄ"} | {"ﾀﾞ": "ダ", "ｶﾞ": "ガ"}
    path = flags.folder / "rules.tsv"
    code = lambda text: " ".join(f"{ord(c):X}" for c in text)
    path.write_text("".join(f"{code(one)}\t{code(other)}\n" for one, other in sources.items()))
    return {"normalization_rule_tsv": str(path)}


def write(folder, name, suffix, data, cases):
    (folder / f"{name}{suffix}").write_bytes(data)
    with open(folder / f"{name}.cases.json", "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(case, ensure_ascii=True, separators=(",", ":")) for case in cases) + "\n]\n")
    print(name, len(cases), "texts")


def cases_of_json(tokenizer, texts):
    cases = []
    for text in texts:
        tokenizer.encode_special_tokens = True
        plain, whole = tokenizer.encode(text, add_special_tokens=False).ids, tokenizer.encode(text).ids
        tokenizer.encode_special_tokens = False
        control = tokenizer.encode(text, add_special_tokens=False).ids
        decoded = tokenizer.decode(control, skip_special_tokens=False)
        seen = tokenizer.decode(control, skip_special_tokens=True)
        cases.append({"text": text, "plain": plain, "whole": whole, "control": control, "decoded": decoded, "seen": seen})
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=20, help="texts beside the hard ones")
    parser.add_argument("--vocabulary", type=int, default=420, help="tokens of a tokenizer, about")
    flags = parser.parse_args()
    flags.folder.mkdir(exist_ok=True, parents=True)
    random_ = random.Random(7)
    lines = corpus(flags)
    # Names of control tokens are no text that merges are learned of.
    own_lines, lines = lines, [line for line in lines if not re.search(r"</?s>|<\||<unk>|<mask>|<extra", line)]
    size = flags.vocabulary
    texts = TEXTS + [mixed(random_, own_lines) for _ in range(flags.lines)]
    level = {
        "gpt2": byte_level(lines, size, None),
        "roberta": byte_level(lines, size, None, prefix_space=True),
        "llama3": byte_level(lines, size, LLAMA3, first="<s>", ignore_merges=True),
        "qwen2": byte_level(lines, size, QWEN2, normalizer=normalizers.NFC()),
        "gpt4o": byte_level(lines, size, GPT4O),
        "starcoder": byte_level(lines, size, None, before=[pre_tokenizers.Digits(individual_digits=True)]),
    }
    both = {f"{kind}-{few}": pieces(lines, size + 300, model_type=kind, byte_fallback=kind == "bpe" or few, remove_extra_whitespaces=few, **rules(flags, few), user_defined_symbols=["<extra_0>", "   "] if not few else ["<extra_0>"], add_dummy_prefix=few or kind == "bpe") for kind in ["bpe", "unigram"] for few in [True, False]}
    named = {**level, **{style: fallback(lines, size + 300, style) for style in ["llama2", "mistral", "gemma", "phi3"]},
             "bert": bert(lines, size, False), "bert-cased": bert(lines, size, True),
             "t5": unigram(lines, size, both["unigram-True"], "t5"), "xlmr": unigram(lines, size, both["unigram-True"], "xlmr"), **others(lines, size)}
    for name, tokenizer in named.items():
        data = json.loads(tokenizer.to_str())
        write(flags.folder, name, ".json", (json.dumps(data, ensure_ascii=True, separators=(",", ":")) + "\n").encode(), cases_of_json(tokenizer, texts))
    for name, model in both.items():
        own = sentencepiece.SentencePieceProcessor(model_proto=model)
        cases = [{"text": text, "plain": own.encode(text), "decoded": own.decode(own.encode(text))} for text in texts if "\0" not in text]
        (flags.folder / "rules.tsv").unlink(missing_ok=True)
        write(flags.folder, "sp-" + name.lower(), ".model", model, cases)
    for name, pattern, source in [("tiktoken-llama-bpe", LLAMA3, "llama3"), ("tiktoken-gpt-4o", GPT4O, "gpt4o")]:
        ranks = ranks_of(level[source])
        specials = {text: len(ranks) + at for at, text in enumerate(SPECIALS)}
        own = tiktoken.Encoding("own", pat_str=pattern, mergeable_ranks=ranks, special_tokens=specials)
        cases = [{"text": text, "plain": own.encode(text, disallowed_special=()), "control": own.encode(text, allowed_special="all"), "decoded": own.decode(own.encode(text, allowed_special="all"))} for text in texts]
        listed = b"".join(base64.b64encode(token) + b" %d\n" % rank for token, rank in ranks.items())
        write(flags.folder, name, ".tiktoken", listed, cases)


def ranks_of(tokenizer):
    """The tokens of a byte-level tokenizer as tiktoken lists them: bytes first, then by merges."""
    data = json.loads(tokenizer.to_str())["model"]
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {chr(byte): byte for byte in printable}
    letters |= {chr(256 + at): byte for at, byte in enumerate(byte for byte in range(256) if byte not in printable)}
    ranks = {bytes([byte]): byte for byte in range(256)}
    for pair in data["merges"]:
        token = bytes(letters[c] for c in "".join(pair))
        ranks.setdefault(token, len(ranks))
    return ranks


if __name__ == "__main__":
    main()
