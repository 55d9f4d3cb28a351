//! The attention that kernels are tried with.

use crate::{
    DType, Exact, Op, Samples, Values,
    attention::{Attention, Mask},
    blocks::BlockFormat,
    cached,
    rows::Rows,
};

/// Attention over a tensor that has queries, keys and values of each token side by side, behind `more` elements; the result has
/// the heads of each token side by side.
fn packed(op: Attention, more: u64) -> Attention {
    let dim = op.head_dim;
    let (heads, kv_heads) = (op.heads, op.kv_heads());
    let token = (heads + 2 * kv_heads) * dim + more;
    let source = op.batch * op.q_len * token;
    let rows = |offset: u64| {
        let (batch, head, row) = (op.q_len * token, dim.into(), token.into());
        Some(Box::new(Rows { source, offset: offset.into(), batch, head, row }))
    };
    let out = Rows::dense(op.batch, heads, op.q_len, dim);
    Attention {
        q_rows: rows(more),
        k_rows: rows(more + heads * dim),
        v_rows: rows(more + (heads + kv_heads) * dim),
        out_rows: Some(Box::new(Rows { head: dim.into(), row: (heads * dim).into(), ..out })),
        ..op
    }
}

impl Attention {
    fn samples_of(dtype: DType) -> Vec<Attention> {
        let of = |heads, q_len, kv_len, head_dim| Attention::new(heads, q_len, kv_len, head_dim, dtype);
        let causal = |op: Attention| Attention { causal: true, ..op };
        let grouped = |op: Attention, kv_heads| Attention { kv_heads: Some(kv_heads), ..op };
        vec![
            of(1, 1, 1, 32),
            of(2, 33, 70, 64),
            of(1, 5, 37, 40),
            causal(of(1, 67, 67, 32)),
            causal(of(2, 12, 100, 128)),
            Attention { batch: 2.into(), ..grouped(of(6, 2, 200, 128), 2) },
            causal(of(2, 5, 130, 256)),
            // Queries before the first key.
            causal(of(1, 20, 9, 16)),
            of(1, 10, 37, 256),
            of(1, 2, 3, 1),
            of(1, 2, 0, 32),
            of(1, 0, 4, 32),
            Attention { batch: 2.into(), capacity: Some(50.into()), ..grouped(of(4, 6, 41, 32), 2) },
            Attention { capacity: Some(300.into()), ..causal(grouped(of(8, 1, 261, 64), 2)) },
            Attention { mask: Mask::Shared, ..of(2, 18, 35, 32) },
            Attention {
                batch: 2.into(),
                mask: Mask::Batch,
                softcap: Some(Exact(1.5)),
                scale: Some(Exact(0.75)),
                ..of(2, 3, 34, 32)
            },
            Attention { batch: 3.into(), lengths: true, ..grouped(of(4, 1, 300, 64), 2) },
            Attention {
                batch: 2.into(),
                lengths: true,
                capacity: Some(80.into()),
                ..causal(of(2, 9, 70, 32))
            },
            Attention { batch: 2.into(), lengths: true, ..causal(grouped(of(4, 3, 140, 128), 1)) },
            Attention { batch: 2.into(), mask: Mask::Full, ..causal(grouped(of(2, 17, 17, 48), 1)) },
            // Rows that are no whole matrices: of words of 16 bytes, and of 8.
            Attention { batch: 2.into(), ..causal(grouped(of(4, 20, 45, 40), 2)) },
            Attention { batch: 2.into(), mask: Mask::Shared, ..of(2, 37, 70, 36) },
            of(2, 18, 41, 152),
            of(1, 70, 33, 4),
        ]
    }

    /// Masks that are the same for each element of the batch, or repeat as those of windows do with each image.
    fn samples_of_repeated_masks(dtype: DType) -> Vec<Attention> {
        let of = |batch: u64, mask_batches: u64, heads, tokens, head_dim| Attention {
            batch: batch.into(),
            mask: Mask::Full,
            mask_batches: Some(mask_batches.into()),
            ..Attention::new(heads, tokens, tokens, head_dim, dtype)
        };
        let batch = Attention { mask: Mask::Batch, kv_len: 20.into(), ..of(6, 2, 2, 9, 64) };
        vec![of(3, 1, 4, 49, 32), batch, of(4, 2, 3, 16, 32)]
    }

    /// Attention to caches in blocks: keys and values of one format, and in turns of two; heads of one block to eight.
    fn samples_in_blocks() -> Vec<Attention> {
        let of = |heads, q_len, kv_len, head_dim| Attention::new(heads, q_len, kv_len, head_dim, DType::F16);
        let causal = |op: Attention| Attention { causal: true, ..op };
        let grouped = |op: Attention, kv_heads| Attention { kv_heads: Some(kv_heads), ..op };
        let (eight, four) = (Some(BlockFormat::Q8_0), Some(BlockFormat::Q4_0));
        let mixed = [(None, eight), (eight, None), (None, four), (eight, four)];
        let shapes = [
            of(2, 1, 3, 32),
            Attention { capacity: Some(300.into()), ..causal(grouped(of(8, 1, 261, 64), 2)) },
            Attention { batch: 2.into(), lengths: true, ..causal(grouped(of(4, 3, 140, 128), 1)) },
            Attention {
                batch: 2.into(),
                lengths: true,
                capacity: Some(80.into()),
                ..causal(of(2, 9, 70, 96))
            },
            causal(grouped(of(4, 5, 130, 256), 1)),
            causal(of(2, 37, 50, 160)),
            Attention { mask: Mask::Shared, ..grouped(of(2, 18, 35, 32), 1) },
            Attention {
                batch: 2.into(),
                mask: Mask::Batch,
                softcap: Some(Exact(1.5)),
                scale: Some(Exact(0.75)),
                ..of(2, 3, 34, 64)
            },
            of(1, 2, 0, 32),
            of(1, 0, 4, 32),
        ];
        let held = |(place, op): (usize, &Attention)| {
            [(eight, eight), (four, four), mixed[place % mixed.len()]].map(|(keys, values)| Attention {
                keys,
                values,
                ..op.clone()
            })
        };
        shapes.iter().enumerate().flat_map(held).collect()
    }

    /// The same of tensors whose rows lie elsewhere.
    fn packed_samples_of(dtype: DType) -> Vec<Attention> {
        let of = |heads, q_len, kv_len, head_dim| Attention::new(heads, q_len, kv_len, head_dim, dtype);
        let causal = |op: Attention| Attention { causal: true, ..op };
        let grouped = |op: Attention, kv_heads| Attention { kv_heads: Some(kv_heads), ..op };
        vec![
            packed(of(3, 21, 21, 32), 0),
            packed(causal(Attention { batch: 2.into(), ..of(4, 40, 40, 64) }), 0),
            packed(Attention { batch: 2.into(), ..grouped(of(6, 19, 19, 16), 2) }, 16),
            packed(grouped(of(8, 3, 3, 128), 2), 256),
            packed(of(1, 12, 12, 7), 5),
            packed(of(3, 20, 20, 60), 4),
            packed(causal(grouped(of(4, 35, 35, 24), 2)), 8),
            // Queries of tokens, keys and values of a cache.
            Attention {
                k_rows: None,
                v_rows: None,
                capacity: Some(90.into()),
                kv_len: 77.into(),
                ..packed(causal(Attention { batch: 2.into(), ..grouped(of(4, 2, 2, 64), 2) }), 0)
            },
        ]
    }
}

impl Samples for Attention {
    fn samples() -> Vec<Attention> {
        let all = |dtype| {
            let packed = Attention::packed_samples_of(dtype);
            [Attention::samples_of(dtype), packed, Attention::samples_of_repeated_masks(dtype)].concat()
        };
        let widened = |op: Attention| Attention { out: Some(DType::F32), ..op };
        let wide = [DType::F16, DType::BF16].into_iter().flat_map(all).chain(Attention::samples_in_blocks());
        let wide = wide.map(widened).filter(|op| op.check().is_ok());
        let same = [DType::F32, DType::F16, DType::BF16].into_iter().flat_map(all);
        same.chain(Attention::samples_in_blocks()).chain(wide).collect()
    }

    /// Finite values; lengths; masks with zeros, minus infinities, and other numbers.
    fn sample_input(&self, index: usize, random: &mut dyn FnMut() -> u64) -> Option<Values> {
        let format = [None, self.keys, self.values].into_iter().nth(index).flatten();
        if let Some(format) = format {
            let rows = self.batch.exact() * self.kv_heads() * self.capacity().exact();
            return Some(cached::sample_rows(format, (rows, self.head_dim), random));
        }
        let tensor = self.inputs().into_iter().nth(index).filter(|_| index >= 2)?;
        if tensor.name == "lengths" {
            // One that is too long, and any from none to all.
            let length = |b| if b == 2 { -1 } else { (random() % (self.kv_len.exact() + 1)) as i64 };
            return Some(Values::Int((0..self.batch.exact()).map(length).collect()));
        }
        let mut unit = || (random() >> 32) as f64 / f64::from(1u32 << 31) - 1.0;
        let element = |_| match (tensor.name, unit()) {
            ("mask", choice) if choice < -0.5 => f64::NEG_INFINITY,
            ("mask", choice) if choice < 0.25 => 0.0,
            (_, value) => self.dtype.round(value),
        };
        Some(Values::Float((0..tensor.elements().exact()).map(element).collect()))
    }
}
