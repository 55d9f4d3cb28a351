//! Archives and arrays that say or unpack to more than they hold.

use crate::noise::Noise;

/// A safetensors file whose header says whatever.
pub fn safetensors(noise: &mut Noise) -> Vec<u8> {
    let mut entries = Vec::new();
    for index in 0..noise.size(4000) {
        let (begin, end) = (noise.size(1 << 40), noise.size(1 << 40));
        let dims: Vec<String> = (0..noise.below(9)).map(|_| noise.size(u64::MAX).to_string()).collect();
        let kind = noise.pick(&["F32", "BF16", "I64", "U8", "F8_E4M3", "Q9"]);
        let name = if noise.once_in(10) { "same".to_owned() } else { format!("t{index}") };
        entries.push(format!(
            r#""{name}":{{"dtype":"{kind}","shape":[{}],"data_offsets":[{begin},{end}]}}"#,
            dims.join(",")
        ));
    }
    if noise.once_in(10) {
        entries = vec![format!(r#""a":{}{}"#, "[".repeat(20_000), "]".repeat(20_000))];
    }
    let header = format!("{{{}}}", entries.join(","));
    let length = if noise.once_in(8) { noise.next() } else { header.len() as u64 };
    [&length.to_le_bytes()[..], header.as_bytes(), &[0; 64]].concat()
}

/// An array whose header promises much.
pub fn npy(noise: &mut Noise) -> Vec<u8> {
    let dims: Vec<String> = (0..noise.below(5)).map(|_| noise.size(u64::MAX).to_string()).collect();
    let kind = noise.pick(&["<f4", "|u1", ">f8", "<c16", "<U9", "|O"]);
    let order = noise.pick(&["True", "False"]);
    let shape = dims.iter().map(|dim| format!("{dim},")).collect::<String>();
    let header = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': ({shape}), }}\n");
    let length = if noise.once_in(8) { noise.next() as u16 } else { header.len() as u16 };
    let content = vec![0; noise.size(1 << 16) as usize];
    [b"\x93NUMPY\x01\x00", &length.to_le_bytes()[..], header.as_bytes(), &content].concat()
}

/// A zip file of arrays of zeros: few bytes that unpack to many.
pub fn npz(noise: &mut Noise) -> Vec<u8> {
    let sizes: Vec<u64> = (0..noise.between(1, 6)).map(|_| noise.size(1 << 27)).collect();
    halite_tools::npz::zeros(&sizes).unwrap_or_default()
}
