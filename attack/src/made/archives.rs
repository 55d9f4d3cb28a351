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

/// An archive of IREE's whose headers, entries and names overlap, repeat, and say whatever.
/// Layout: `iree/schemas/parameter_archive.h` of IREE.
pub fn irpa(noise: &mut Noise) -> Vec<u8> {
    let count = noise.size(3000);
    let names = "n".repeat(64);
    let mut table = Vec::new();
    for _ in 0..count {
        let at = table.len();
        // All begin alike: size, type, flags, where the name and the metadata are, alignment.
        let kind = noise.below(4) as u32;
        let size = if noise.once_in(9) { noise.size(1 << 20) } else { 60 + if kind == 1 { 25 } else { 16 } };
        let length = if noise.once_in(30) { noise.size(1 << 20) } else { noise.size(16) };
        for number in [size, u64::from(kind)] {
            table.extend(number.to_le_bytes());
        }
        table.truncate(at + 12);
        for number in [0, noise.size(48), length, 0, 0, 16, noise.size(1 << 30), noise.size(1 << 50)] {
            table.extend(number.to_le_bytes());
        }
        table.extend([4; 9]);
        table.resize(table.len().next_multiple_of(16), 0);
    }
    let next = if noise.once_in(3) { noise.size(1 << 12) & !15 } else { 0 };
    let said = if noise.once_in(4) { noise.next() } else { count };
    let (entries, rest) = (table.len() as u64, 96 + table.len() as u64);
    let mut file = b"IRPA\0\0\0\0".to_vec();
    for number in [88, next, 0, said, 96, entries, rest, 64, rest, noise.size(1 << 12)] {
        file.extend(number.to_le_bytes());
    }
    file.resize(96, 0);
    [file, table, names.into_bytes(), vec![0; 4096]].concat()
}

/// A zip file of very many small arrays; its directory is damaged now and then.
pub fn members(noise: &mut Noise) -> Vec<u8> {
    let sizes: Vec<u64> = (0..noise.size(4000)).map(|_| noise.size(64)).collect();
    let mut file = halite_tools::npz::zeros(&sizes).unwrap_or_default();
    for _ in 0..noise.below(4) {
        let at = file.len().saturating_sub(1 + noise.size(1 << 12) as usize);
        if let Some(byte) = file.get_mut(at) {
            *byte = noise.next() as u8;
        }
    }
    file
}

/// A zip file of arrays of zeros: few bytes that unpack to many.
pub fn npz(noise: &mut Noise) -> Vec<u8> {
    let sizes: Vec<u64> = (0..noise.between(1, 6)).map(|_| noise.size(1 << 27)).collect();
    halite_tools::npz::zeros(&sizes).unwrap_or_default()
}
