//! Holds the binary interface to `abi.txt`: functions with their signatures, numbers, and where the fields of structures lie on 64-bit
//! systems. `HALITE_WRITE_ABI=1 cargo test -p halite-c --test abi` writes the file anew.
//!
//! A line that is only added is a compatible addition: raise `HALITE_C_ABI_MINOR`. One that changes or goes is not: raise
//! `HALITE_C_ABI_MAJOR`, and set the minor number to 0.
#![cfg(target_pointer_width = "64")]

use std::{collections::BTreeSet, fmt::Write as _, fs, path::PathBuf};

use halite_c::{
    device::*, drivers::*, generator::*, options::*, sequence::*, shared::*, signature::*, source::*,
    steps::*, tokens::*, values::*, vulkan::*,
};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

macro_rules! layouts {
    ($($structure:ident { $($field:ident),* })*) => {
        /// The structures, with the offset and the size of each field.
        fn layouts() -> Vec<(&'static str, usize, Vec<(&'static str, usize, usize)>)> {
            fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {
                size_of::<F>()
            }
            vec![$((stringify!($structure), size_of::<$structure>(), vec![$((
                stringify!($field),
                std::mem::offset_of!($structure, $field),
                size_of_field(|s: &$structure| &s.$field),
            )),*])),*]
        }
    };
}

layouts! {
    halite_progress { struct_size, stage, detail, done, total }
    halite_run_options { struct_size, timeout_ns, cancel, progress, progress_context }
    halite_source { struct_size, path, data, size, read, release, context, name }
    halite_property { name, value }
    halite_device_info { struct_size, uri, name, driver, target, unusable, properties, property_count, kind }
    halite_device_stats {
        struct_size, reserved, used, peak_reserved, peak_used, allocations, uploads, uploaded_bytes, downloads, downloaded_bytes,
        recordings_executed, recordings_written, recordings_written_ahead, recordings_found_ahead
    }
    halite_vulkan_queue { queue, family }
    halite_vulkan_device {
        struct_size, get_instance_proc_addr, instance, physical_device, api_version, device, queues, queue_count, extensions,
        extension_count, features, feature_count, lock, unlock, release, context
    }
    halite_external_memory {
        struct_size, kind, fd, handle, size, has_memory_type, is_dedicated, memory_type, release, context
    }
    halite_memory_support { struct_size, alignment, can_import, can_export }
    halite_input { name, tensor, value }
    halite_dimension { name, size, kind }
    halite_signature_info { struct_size, name, module, text, input_count, output_count, state_count }
    halite_value_info {
        struct_size, name, text, dimensions, rank, has_rank, is_optional, kind, element_type
    }
    halite_generator_options { struct_size, context, keys, values, scoring, tokenizer, choose_on, batch }
    halite_message { role, content }
    halite_writer { sequence, sampler, token, stop }
    halite_piece { struct_size, text, text_size, token }
    halite_generation {
        struct_size, most, stops, stop_count, told, context, seed, top_k, repeat_last, temperature, top_p, min_p, repeat_penalty,
        ignore_end,
        json_schema
    }
}

/// The header without comments, blank lines and line breaks within declarations.
fn declarations(header: &str) -> Vec<String> {
    let code = header.lines().filter(|line| !line.trim_start().starts_with("//") && !line.starts_with('#'));
    let text = code.collect::<Vec<_>>().join(" ");
    let plain = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ").replace("( ", "(");
    text.split(';').map(plain).filter(|part| !part.is_empty()).collect()
}

/// All that programs compile in.
fn interface() -> String {
    let header = fs::read_to_string(file("include/halite/halite.h")).expect("the header is there");
    let mut text = String::new();
    let all = declarations(&header);
    for function in all.iter().filter_map(|line| line.split_once("HALITE_API ").map(|(_, rest)| rest)) {
        let function = function.strip_prefix("HALITE_CHECK ").unwrap_or(function);
        writeln!(text, "function {function}").expect("a text takes all");
    }
    let callbacks = all.iter().filter(|line| line.starts_with("typedef ") && line.contains("(*"));
    callbacks.for_each(|line| writeln!(text, "{line}").expect("a text takes all"));
    let numbers = header.lines().filter_map(|line| line.strip_prefix("#define HALITE_"));
    for number in numbers.filter(|rest| rest.ends_with(|c: char| c.is_ascii_digit()) && !rest.contains("ABI"))
    {
        writeln!(text, "number HALITE_{number}").expect("a text takes all");
    }
    for (name, size, fields) in layouts() {
        writeln!(text, "structure {name} of {size} bytes").expect("a text takes all");
        for (field, offset, size) in fields {
            writeln!(text, "field {name}.{field} at {offset} of {size} bytes").expect("a text takes all");
        }
    }
    text
}

#[test]
fn the_binary_interface_is_what_was_agreed() {
    let (path, now) = (file("abi.txt"), interface());
    if std::env::var_os("HALITE_WRITE_ABI").is_some() {
        fs::write(&path, &now).expect("the file can be written");
        return;
    }
    let agreed = fs::read_to_string(&path).expect("abi.txt is there");
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (agreed.lines().collect(), now.lines().collect());
    let gone: Vec<_> = old.difference(&new).copied().collect();
    let added: Vec<_> = new.difference(&old).copied().collect();
    assert!(
        gone.is_empty(),
        "the binary interface breaks programs that were built before.\ngone or changed:\n{}\nnew:\n{}\nIf that has to be, raise \
         HALITE_C_ABI_MAJOR and write abi.txt anew (see the head of this test)",
        gone.join("\n"),
        added.join("\n")
    );
    assert!(
        added.is_empty(),
        "abi.txt does not have:\n{}\nRaise HALITE_C_ABI_MINOR and write abi.txt anew (see the head of this test)",
        added.join("\n")
    );
}

#[test]
fn every_function_and_structure_of_the_sources_is_in_the_interface() {
    let (mut functions, mut structures) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(file("src")).expect("the sources are there") {
        let text = fs::read_to_string(entry.expect("a file").path()).expect("a source is text");
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in product.lines() {
            if let Some((_, rest)) = line.split_once("extern \"C\" fn halite_") {
                functions.insert(format!("halite_{}", rest.split('(').next().unwrap_or_default()));
            }
        }
        for part in product.split("#[repr(C)]").skip(1) {
            let name = part.split("pub struct ").nth(1).and_then(|rest| rest.split(' ').next());
            structures.insert(name.expect("a structure has a name").to_owned());
        }
    }
    let interface = interface();
    let told = |function: &str| interface.lines().any(|line| line.contains(&format!("{function}(")));
    let missing: Vec<_> = functions.iter().filter(|function| !told(function)).collect();
    assert!(functions.len() > 100 && missing.is_empty(), "halite.h lacks {missing:?} of {}", functions.len());
    let laid_out: BTreeSet<String> = layouts().iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(structures, laid_out, "the list of structures in this test is not complete");
    // Every field of a structure is listed: together with padding below a word they fill it.
    for (name, size, fields) in layouts() {
        let mut end = 0;
        for (field, offset, length) in fields {
            assert!(
                offset >= end && offset - end < 8,
                "{name} has a field before '{field}' that this test does not list"
            );
            end = offset + length;
        }
        assert!(size - end < 8, "{name} has a field at its end that this test does not list");
    }
}
