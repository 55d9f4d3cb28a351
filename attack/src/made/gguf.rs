//! GGUF files that say much in few bytes: keys, arrays, tensors and layers without end. Format: `docs/gguf.md` of the ggml project.

use crate::noise::Noise;

/// Types of values that have a fixed size, and their bytes.
const FIXED: [(u32, usize); 11] =
    [(0, 1), (1, 1), (2, 2), (3, 2), (4, 4), (5, 4), (6, 4), (7, 1), (10, 8), (11, 8), (12, 8)];
const UINT32: u32 = 4;
const FLOAT32: u32 = 6;
const TEXT: u32 = 8;
const LIST: u32 = 9;
/// Types of tensors: floats, blocks of all kinds, and one that nobody knows.
const ELEMENTS: [u32; 12] = [0, 1, 2, 3, 6, 8, 10, 12, 14, 20, 30, 77];
/// Where weights begin.
const ALIGNMENT: usize = 32;

/// A file in the making.
#[derive(Default)]
struct File {
    keys: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    /// Bytes of weights.
    data: usize,
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

impl File {
    fn key(&mut self, name: &str, kind: u32, value: &[u8]) {
        self.keys.push([&text(name)[..], &kind.to_le_bytes(), value].concat());
    }

    fn tensor(&mut self, name: &str, dims: &[u64], element: u32, offset: u64) {
        let mut bytes = text(name);
        bytes.extend((dims.len() as u32).to_le_bytes());
        bytes.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
        bytes.extend(element.to_le_bytes());
        bytes.extend(offset.to_le_bytes());
        self.tensors.push(bytes);
    }

    fn finish(self, counts: Option<[u64; 2]>) -> Vec<u8> {
        let own = [self.tensors.len() as u64, self.keys.len() as u64];
        let [tensors, keys] = counts.unwrap_or(own);
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend(tensors.to_le_bytes());
        file.extend(keys.to_le_bytes());
        self.keys.iter().chain(&self.tensors).for_each(|bytes| file.extend(bytes));
        file.resize(file.len().next_multiple_of(ALIGNMENT) + self.data, 0);
        file
    }
}

/// An array: its head, and elements; mostly as many as it says, and arrays of arrays now and then.
fn array(noise: &mut Noise) -> Vec<u8> {
    let count = noise.size(1 << 16);
    let said = if noise.once_in(4) { noise.size(u64::MAX) } else { count };
    let head = |kind: u32, count: u64| [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat();
    match noise.below(4) {
        0 => [head(TEXT, said), text("▁x").repeat(count as usize / 10)].concat(),
        1 => {
            // Each holds the next: what reads them one in the other would need as much stack.
            let depth = noise.size(1 << 14) as usize;
            head(LIST, 1).repeat(depth)
        }
        _ => {
            let (kind, bytes) = *noise.pick(&FIXED);
            [head(kind, said), vec![0; count as usize * bytes / 4]].concat()
        }
    }
}

/// A file with keys and tensors of whatever kind.
pub fn headers(noise: &mut Noise) -> Vec<u8> {
    let mut file = File { data: noise.size(1 << 12) as usize, ..File::default() };
    for index in 0..noise.size(2000) {
        let name = if noise.once_in(20) { "same".to_owned() } else { format!("k{index}") };
        match noise.below(3) {
            0 => {
                let value = array(noise);
                let small = if file.keys.len() > 8 { &value[..value.len().min(64)] } else { &value[..] };
                file.key(&name, LIST, small);
            }
            1 => file.key(&name, TEXT, &text(&"y".repeat(noise.size(1 << 10) as usize))),
            _ => {
                let (kind, bytes) = *noise.pick(&FIXED);
                file.key(&name, kind, &noise.next().to_le_bytes()[..bytes]);
            }
        }
    }
    for index in 0..noise.size(4000) {
        let dims: Vec<u64> = (0..noise.below(6)).map(|_| noise.size(u64::MAX)).collect();
        let name = if noise.once_in(20) { "same".to_owned() } else { format!("t{index}") };
        let element = *noise.pick(&ELEMENTS);
        let offset = noise.size(1 << 40) & !31;
        file.tensor(&name, &dims, element, offset);
    }
    let counts = noise.once_in(4).then(|| [noise.size(u64::MAX), noise.size(u64::MAX)]);
    file.finish(counts)
}

/// A decoder whose metadata promise more than its weights hold, over few weights that many tensors share.
pub fn decoders(noise: &mut Noise) -> Vec<u8> {
    let family = *noise.pick(&["llama", "qwen2", "qwen3", "gemma3", "phi3", "gpt2"]);
    let width = 32 << noise.below(4);
    // Mostly enough for the largest of its tensors, which all lie in the same place.
    let data = if noise.once_in(8) { noise.size(1 << 18) } else { 4 * 2 * width * width.max(64) };
    let mut file = File { data: data as usize, ..File::default() };
    file.key("general.architecture", TEXT, &text(family));
    let layers = match noise.once_in(3) {
        true => noise.size(1 << 32),
        false => noise.size(600),
    };
    let mut number = |name: &str, value: u64| {
        file.key(&format!("{family}.{name}"), UINT32, &(value as u32).to_le_bytes());
    };
    let mut size = |usual: u64| if noise.once_in(12) { noise.size(1 << 32) } else { usual };
    let (heads, vocabulary) = (size(4), size(64));
    number("block_count", layers);
    number("embedding_length", size(width));
    number("feed_forward_length", size(2 * width));
    number("context_length", size(128));
    number("attention.head_count", heads);
    number("attention.head_count_kv", size(heads.min(4)));
    number("vocab_size", vocabulary);
    for name in ["attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon", "rope.freq_base"] {
        file.key(&format!("{family}.{name}"), FLOAT32, &noise_float(noise).to_le_bytes());
    }
    tokens(noise, &mut file, vocabulary.min(1 << 14));
    file.tensor("token_embd.weight", &[width, vocabulary], 0, 0);
    file.tensor("output_norm.weight", &[width], 0, 0);
    for layer in 0..layers.min(600) {
        for (name, dims) in [
            ("attn_norm", vec![width]),
            ("attn_q", vec![width, width]),
            ("attn_k", vec![width, width]),
            ("attn_v", vec![width, width]),
            ("attn_output", vec![width, width]),
            ("ffn_norm", vec![width]),
            ("ffn_gate", vec![width, 2 * width]),
            ("ffn_up", vec![width, 2 * width]),
            ("ffn_down", vec![2 * width, width]),
        ] {
            let element = if dims.len() == 1 || !noise.once_in(200) { 0 } else { *noise.pick(&ELEMENTS) };
            file.tensor(&format!("blk.{layer}.{name}.weight"), &dims, element, 0);
        }
    }
    file.finish(None)
}

fn noise_float(noise: &mut Noise) -> f32 {
    *noise.pick(&[1e-5, 1e4, 0.0, -1.0, f32::NAN, f32::INFINITY, f32::MIN_POSITIVE])
}

/// A tokenizer, perhaps with a template that does a lot.
fn tokens(noise: &mut Noise, file: &mut File, count: u64) {
    let head = |kind: u32, count: u64| [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat();
    let model = *noise.pick(&["llama", "gpt2", "bert", "none"]);
    file.key("tokenizer.ggml.model", TEXT, &text(model));
    let names = (0..count).flat_map(|index| text(&format!("t{index}"))).collect::<Vec<u8>>();
    file.key("tokenizer.ggml.tokens", LIST, &[head(TEXT, count), names].concat());
    file.key("tokenizer.ggml.scores", LIST, &[head(FLOAT32, count), vec![0; 4 * count as usize]].concat());
    let merges = (0..noise.size(1 << 12)).flat_map(|index| text(&format!("t{index} t{index}")));
    let merges: Vec<u8> = merges.collect();
    let lines = merges.iter().filter(|byte| **byte == b' ').count() as u64;
    file.key("tokenizer.ggml.merges", LIST, &[head(TEXT, lines), merges].concat());
    let template = match noise.below(3) {
        0 => "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}".to_owned(),
        1 => format!("{}1{}", "{{ (".repeat(2000), ") }}".repeat(2000)),
        _ => "{{ messages }}".to_owned(),
    };
    file.key("tokenizer.chat_template", TEXT, &text(&template));
}

/// Where numbers of a sound file stand: the values of its keys with their types, and the dimensions of its tensors.
#[derive(Default)]
struct Numbers {
    values: Vec<(usize, u32)>,
    dims: Vec<usize>,
}

/// Reads forward in a file.
struct Walk<'a>(&'a [u8], usize);

impl Walk<'_> {
    fn take(&mut self, count: usize) -> Option<usize> {
        let (at, end) = (self.1, self.1.checked_add(count).filter(|end| *end <= self.0.len())?);
        self.1 = end;
        Some(at)
    }

    fn four(&mut self) -> Option<u32> {
        let at = self.take(4)?;
        self.0[at..].first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes))
    }

    fn eight(&mut self) -> Option<u64> {
        let at = self.take(8)?;
        self.0[at..].first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes))
    }

    fn text(&mut self) -> Option<()> {
        let length = self.eight()?;
        self.take(usize::try_from(length).ok()?).map(drop)
    }

    /// Passes over a value, and notes where it is if it has a fixed size.
    fn value(&mut self, kind: u32, found: &mut Numbers) -> Option<()> {
        match kind {
            TEXT => self.text(),
            LIST => {
                let (kind, count) = (self.four()?, self.eight()?);
                // The first of a list that says something for each layer.
                (0..count).try_for_each(|at| match at {
                    0 => self.value(kind, found),
                    _ => self.value(kind, &mut Numbers::default()),
                })
            }
            _ => {
                let bytes = FIXED.iter().find(|(own, _)| *own == kind)?.1;
                found.values.push((self.take(bytes)?, kind));
                Some(())
            }
        }
    }

    fn file(&mut self, found: &mut Numbers) -> Option<()> {
        self.take(8)?;
        let (tensors, keys) = (self.eight()?, self.eight()?);
        for _ in 0..keys {
            self.text()?;
            let kind = self.four()?;
            self.value(kind, found)?;
        }
        for _ in 0..tensors {
            self.text()?;
            let count = self.four()?;
            for _ in 0..count {
                found.dims.push(self.take(8)?);
            }
            self.take(12)?;
        }
        Some(())
    }
}

/// A sound language model in which one or a few numbers of the metadata are others, often far from what they could be.
pub fn far(noise: &mut Noise, sound: &[u8]) -> Vec<u8> {
    const FLOATS: [f32; 10] = [0.0, -1.0, 1.0, 1e-30, 1e-5, 8.0, 1e6, f32::MAX, f32::NAN, f32::NEG_INFINITY];
    let mut found = Numbers::default();
    // Of what is damaged as it is, all that was found so far.
    _ = Walk(sound, 0).file(&mut found);
    let mut file = sound.to_vec();
    for _ in 0..noise.between(1, 3) {
        if !found.dims.is_empty() && noise.once_in(12) {
            let at = *noise.pick(&found.dims);
            file[at..at + 8].copy_from_slice(&noise.size(1 << 40).to_le_bytes());
        } else if !found.values.is_empty() {
            let (at, kind) = *noise.pick(&found.values);
            let bytes = FIXED.iter().find(|(own, _)| *own == kind).map_or(0, |(_, bytes)| *bytes);
            let number = if noise.once_in(3) { noise.size(u64::MAX) } else { noise.size(1 << 12) };
            let new = match kind {
                FLOAT32 => noise.pick(&FLOATS).to_le_bytes().to_vec(),
                _ => number.to_le_bytes()[..bytes].to_vec(),
            };
            file[at..at + bytes].copy_from_slice(&new);
        }
    }
    file
}
