"""llama.cpp's libraries, called from Python. A folder has its libggml-base, libggml, libllama and back ends, such as libggml-cpu: that of
the package `cyllama-vulkan` 0.7.0 does."""

import ctypes as C
import glob
import os


class Params(C.Structure):
    """Either of llama.cpp's structures of parameters, which are left as they are but for some numbers."""

    _fields_ = [("bytes", C.c_uint8 * 512)]


class Batch(C.Structure):
    _fields_ = [("count", C.c_int32)] + [(name, C.c_void_p) for name in ("token", "embd", "pos", "n_seq", "seq", "logits")]


# For `llama_log_set`: nothing of what llama.cpp tells is of interest.
SILENT = C.CFUNCTYPE(None, C.c_int, C.c_char_p, C.c_void_p)(lambda level, text, data: None)

FUNCTIONS = (
    ("llama_model_default_params", Params, []),
    ("llama_context_default_params", Params, []),
    ("llama_model_load_from_file", C.c_void_p, [C.c_char_p, Params]),
    ("llama_init_from_model", C.c_void_p, [C.c_void_p, Params]),
    ("llama_model_free", None, [C.c_void_p]),
    ("llama_free", None, [C.c_void_p]),
    ("llama_model_get_vocab", C.c_void_p, [C.c_void_p]),
    ("llama_vocab_n_tokens", C.c_int32, [C.c_void_p]),
    ("llama_tokenize", C.c_int32, [C.c_void_p, C.c_char_p, C.c_int32, C.c_void_p, C.c_int32, C.c_bool, C.c_bool]),
    ("llama_batch_get_one", Batch, [C.c_void_p, C.c_int32]),
    ("llama_decode", C.c_int32, [C.c_void_p, Batch]),
    ("llama_synchronize", None, [C.c_void_p]),
    ("llama_get_logits_ith", C.POINTER(C.c_float), [C.c_void_p, C.c_int32]),
    ("llama_get_memory", C.c_void_p, [C.c_void_p]),
    ("llama_memory_clear", None, [C.c_void_p, C.c_bool]),
    ("llama_model_n_embd", C.c_int32, [C.c_void_p]),
    ("llama_model_n_embd_out", C.c_int32, [C.c_void_p]),
    ("llama_set_embeddings", None, [C.c_void_p, C.c_bool]),
    ("llama_get_embeddings_seq", C.POINTER(C.c_float), [C.c_void_p, C.c_int32]),
)


def libraries(folder, backends):
    """libllama with some back ends, `cpu` or `vulkan`."""
    load = lambda name: C.CDLL(glob.glob(os.path.join(folder, name))[0], mode=C.RTLD_GLOBAL)
    load("libggml-base*.so*")
    ggml, lib = load("libggml-[!bcv]*.so*"), load("libllama*.so*")
    ggml.ggml_backend_load.restype = C.c_void_p
    for part in backends:
        assert ggml.ggml_backend_load(glob.glob(os.path.join(folder, f"libggml-{part}*.so"))[0].encode()), part
    for name, result, arguments in FUNCTIONS:
        getattr(lib, name).restype, getattr(lib, name).argtypes = result, arguments
    return lib
