//! What architectures of GGUF files differ in that their metadata do not say.

/// How a decoder's layer is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Family {
    /// Its name in `general.architecture`.
    pub name: &'static str,
    /// Whether rotary embedding turns neighbours, and not halves.
    pub interleaved: bool,
    /// Whether the feed-forward network's gate is a GELU, and not a SiLU.
    pub gelu: bool,
    /// Whether embeddings are multiplied by the root of the width.
    pub scaled_embedding: bool,
    /// Of so many layers one, the last, attends to all keys and the others to a window; 0 where all do.
    pub local_of: u64,
    /// The window where the metadata say none.
    pub window: Option<u64>,
    /// The base of rotary embedding in layers that attend to a window, where it is another.
    pub local_base: Option<f64>,
    /// Of so many layers one, the last, has no rotary embedding; 0 where all have one.
    pub plain_of: u64,
    /// Number of layers with which heads are scaled by the width and not by their own size.
    pub scaled_by_width_at: u64,
    /// Whether the long or the short factors of rotary embedding are tensors of the file.
    pub long_factors: bool,
}

const LLAMA: Family = Family {
    name: "llama",
    interleaved: true,
    gelu: false,
    scaled_embedding: false,
    local_of: 0,
    window: None,
    local_base: None,
    plain_of: 0,
    scaled_by_width_at: 0,
    long_factors: false,
};

const GEMMA: Family =
    Family { name: "gemma", interleaved: false, gelu: true, scaled_embedding: true, ..LLAMA };

/// All of them, in the order of messages.
pub(super) const FAMILIES: &[Family] = &[
    LLAMA,
    Family { name: "qwen2", interleaved: false, ..LLAMA },
    Family { name: "qwen3", interleaved: false, ..LLAMA },
    GEMMA,
    Family { name: "gemma2", local_of: 2, window: Some(4096), scaled_by_width_at: 46, ..GEMMA },
    Family { name: "gemma3", local_of: 6, local_base: Some(10_000.0), scaled_by_width_at: 62, ..GEMMA },
    Family { name: "phi3", interleaved: false, long_factors: true, ..LLAMA },
    Family { name: "granite", ..LLAMA },
    Family { name: "smollm3", plain_of: 4, ..LLAMA },
];
