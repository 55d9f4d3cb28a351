//! Damage that keeps a module file well-formed: what a buggy or hostile compiler would write.

use bytes::Bytes;
use halite_formats::vmfb::{
    DispatchAbi, ModuleDef, VulkanExecutable, WriteOptions, read_module, read_vulkan_executable,
    write_module, write_vulkan_executable,
};

use crate::noise::Noise;

const CONVENTIONS: &[&str] =
    &["", "0", "0v_v", "0r_r", "0rr_r", "0CrD_r", "0iIfF_I", "0rrrrrrrr_rrrr", "1v_v", "0C"];
const COUNTS: &[u16] = &[0, 1, 2, 3, 7, 0x3FFF, 0x7FFF, 0xFFFF];
const SIZES: &[u32] = &[0, 1, 4, 8, 0xFFFF, 0x7FFF_FFFF, u32::MAX];

/// Writes the module again with one thing wrong. `None` when there is nothing to damage or it cannot be written.
pub fn module(file: &Bytes, noise: &mut Noise) -> Option<Vec<u8>> {
    let mut module = read_module(file.clone()).ok()?;
    match noise.below(3) {
        0 => damage_functions(&mut module, noise)?,
        1 => damage_tables(&mut module, noise)?,
        _ => damage_contents(&mut module, noise)?,
    }
    write_module(&module, &WriteOptions::default()).ok()
}

fn index<T>(of: &[T], noise: &mut Noise) -> Option<usize> {
    (!of.is_empty()).then(|| noise.below(of.len()))
}

fn damage_functions(module: &mut ModuleDef, noise: &mut Noise) -> Option<()> {
    let at = index(&module.functions, noise)?;
    let functions = module.functions.len();
    let function = &mut module.functions[at];
    match noise.below(8) {
        0 => function.i32_register_count = *noise.pick(COUNTS),
        1 => function.ref_register_count = *noise.pick(COUNTS),
        2 => function.block_count = *noise.pick(COUNTS),
        3 => {
            function.bytecode_length =
                function.bytecode_length.wrapping_add(*noise.pick(&[1, 2, 8, u32::MAX]));
        }
        4 => {
            function.bytecode_offset =
                function.bytecode_offset.wrapping_add(*noise.pick(&[1, 8, 64, u32::MAX]));
        }
        5 => function.requirements ^= 1 << noise.below(6),
        6 => function.signature.calling_convention = (*noise.pick(CONVENTIONS)).to_owned(),
        _ => module.functions.swap(at, noise.below(functions)),
    }
    Some(())
}

fn damage_tables(module: &mut ModuleDef, noise: &mut Noise) -> Option<()> {
    match noise.below(9) {
        0 => module.bytecode_version = *noise.pick(&[0, 16 << 16, 17 << 16 | 1, 18 << 16, u32::MAX]),
        1 => module.requirements ^= 1 << noise.below(32),
        2 => {
            let (functions, at) = (module.functions.len(), index(&module.exports, noise)?);
            module.exports[at].ordinal = noise.below(functions + 2) as u32;
        }
        3 => {
            let at = index(&module.types, noise)?;
            module.types[at] =
                (*noise.pick(&["", "i32", "!hal.nonsense", "!vm.list<?>", "!hal.fence"])).to_owned();
        }
        4 => {
            let (a, b) = (index(&module.types, noise)?, index(&module.types, noise)?);
            module.types.swap(a, b);
        }
        5 => {
            let at = index(&module.dependencies, noise)?;
            module.dependencies[at].minimum_version = u32::MAX;
        }
        6 => {
            // Another host function is called with these arguments, and nothing in the file says that they differ.
            let (a, b) = (index(&module.imports, noise)?, index(&module.imports, noise)?);
            module.imports.swap(a, b);
            module.imports.iter_mut().for_each(|i| i.signature.calling_convention.clear());
        }
        7 => {
            let at = index(&module.imports, noise)?;
            module.imports[at].signature.calling_convention = (*noise.pick(CONVENTIONS)).to_owned();
        }
        _ => {
            let at = index(&module.imports, noise)?;
            module.imports[at].optional = true;
            module.imports[at].full_name.push('x');
        }
    }
    Some(())
}

fn damage_contents(module: &mut ModuleDef, noise: &mut Noise) -> Option<()> {
    match noise.below(6) {
        0 => module.global_bytes_capacity = *noise.pick(SIZES),
        1 => module.global_ref_count = *noise.pick(SIZES),
        2 => {
            let (a, b) = (index(&module.rodata, noise)?, index(&module.rodata, noise)?);
            module.rodata.swap(a, b);
        }
        3 => {
            let keep = index(&module.rodata, noise)?;
            module.rodata.truncate(keep);
        }
        4 => {
            let at = index(&module.rodata, noise)?;
            let keep = noise.below(module.rodata[at].len() + 1);
            module.rodata[at].truncate(keep);
        }
        _ => {
            let other = index(&module.rodata, noise)?;
            let at = index(&module.rodata, noise)?;
            module.rodata[at] = module.rodata[other].clone();
        }
    }
    Some(())
}

/// Writes an executable of the module again with one thing wrong.
pub fn executable(file: &Bytes, noise: &mut Noise) -> Option<Vec<u8>> {
    let mut module = read_module(file.clone()).ok()?;
    let readable = |data: &Bytes| read_vulkan_executable(data.clone()).is_ok();
    let all: Vec<usize> = (0..module.rodata.len()).filter(|i| readable(&module.rodata[*i])).collect();
    let at = all[index(&all, noise)?];
    let mut executable = read_vulkan_executable(module.rodata[at].clone()).ok()?;
    match noise.below(2) {
        0 => damage_pipeline(&mut executable, noise)?,
        _ => damage_layouts(&mut executable, noise)?,
    }
    module.rodata[at] = write_vulkan_executable(&executable).ok()?.into();
    write_module(&module, &WriteOptions::default()).ok()
}

fn damage_pipeline(executable: &mut VulkanExecutable, noise: &mut Noise) -> Option<()> {
    let at = index(&executable.pipelines, noise)?;
    let layouts = executable.pipeline_layouts.len();
    let shaders = executable.shader_modules.len();
    let pipeline = &mut executable.pipelines[at];
    match noise.below(7) {
        0 => pipeline.entry_point.push('x'),
        1 => pipeline.name.push('x'),
        2 => pipeline.layout = noise.below(layouts) as u32,
        3 => pipeline.shader_module = noise.below(shaders) as u32,
        4 => pipeline.subgroup_size = 1 << noise.below(8),
        5 => pipeline.abi = DispatchAbi::BufferDeviceAddress,
        _ => executable.pipelines.truncate(at),
    }
    Some(())
}

fn damage_layouts(executable: &mut VulkanExecutable, noise: &mut Noise) -> Option<()> {
    match noise.below(6) {
        0 => {
            let at = index(&executable.set_layouts, noise)?;
            executable.set_layouts[at].pop()?;
        }
        1 => {
            let at = index(&executable.set_layouts, noise)?;
            let binding = executable.set_layouts[at].last_mut()?;
            binding.binding = binding.binding.wrapping_add(*noise.pick(&[1, 7, 1000]));
        }
        2 => {
            let at = index(&executable.set_layouts, noise)?;
            let binding = executable.set_layouts[at].first_mut()?;
            binding.descriptor_type = 13 - binding.descriptor_type;
        }
        3 => {
            let at = index(&executable.pipeline_layouts, noise)?;
            executable.pipeline_layouts[at].set_layouts.pop()?;
        }
        4 => {
            let at = index(&executable.pipeline_layouts, noise)?;
            let range = executable.pipeline_layouts[at].push_constants.first_mut()?;
            range.size = *noise.pick(&[4, 8, range.size + 4, 256, 4096]);
        }
        _ => {
            let at = index(&executable.pipeline_layouts, noise)?;
            executable.pipeline_layouts[at].push_constants.clear();
        }
    }
    Some(())
}
