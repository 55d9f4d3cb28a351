//! What is said about modules that are refused. The modules are made by our writer, so no corpus is needed.
#![allow(clippy::unwrap_used, reason = "a helper that fails is a failed test")]

use bytes::Bytes;
use halite_formats::vmfb::{
    BdaLayout, DescriptorBinding, DispatchAbi, Export, Function, FunctionSignature, ModuleDef, Pipeline,
    PipelineLayout, VmfbError, VulkanExecutable, WriteOptions, read_module, read_vulkan_executable,
    write_module, write_vulkan_executable,
};

fn module() -> ModuleDef {
    let function = Function {
        signature: FunctionSignature { calling_convention: "0v_v".into(), attrs: Vec::new() },
        bytecode_offset: 0,
        bytecode_length: 8,
        requirements: 0,
        block_count: 1,
        i32_register_count: 2,
        ref_register_count: 1,
    };
    ModuleDef {
        name: "m".into(),
        exports: vec![Export { local_name: "main".into(), ordinal: 0 }],
        functions: vec![function],
        rodata: vec![Bytes::from_static(b"small"), Bytes::from(vec![1; 1000])],
        bytecode: Bytes::from_static(&[0x79, 0x5A, 0, 0, 0, 0, 0, 0]),
        bytecode_version: 17 << 16,
        ..ModuleDef::default()
    }
}

/// Writes the module after a change, and says what the reader answers.
fn answer(change: impl FnOnce(&mut ModuleDef)) -> String {
    let mut module = module();
    change(&mut module);
    let file = write_module(&module, &WriteOptions { polyglot_zip: false }).unwrap();
    read_module(Bytes::from(file)).unwrap_err().to_string()
}

#[test]
fn the_unchanged_module_is_fine() {
    for polyglot_zip in [false, true] {
        let file = write_module(&module(), &WriteOptions { polyglot_zip }).unwrap();
        assert_eq!(read_module(Bytes::from(file)).unwrap(), module());
    }
}

#[test]
fn versions_and_requirements() {
    for (version, text) in [(17 << 16 | 1, "17.1"), (18 << 16, "18.0"), (0, "0.0")] {
        let expected = format!(
            "module has bytecode version {text}, this reader supports 17.0 to 17.0; compile it again with a matching \
             compiler"
        );
        assert_eq!(answer(|m| m.bytecode_version = version), expected);
    }
    assert_eq!(
        answer(|m| m.requirements = 0x13),
        "the module requires features 0x13, of which 0x10 are unknown here (known: 0xf)"
    );
    assert!(
        answer(|m| m.functions[0].requirements = 32)
            .starts_with("BytecodeModuleDef.function_descriptors[0] requires")
    );
}

#[test]
fn names_counts_and_ranges() {
    assert_eq!(
        answer(|m| m.name.clear()),
        "BytecodeModuleDef: BytecodeModuleDef.name is empty; it must be a name"
    );
    assert_eq!(
        answer(|m| m.types.push(String::new())),
        "BytecodeModuleDef.types[0]: TypeDef.full_name is empty; it must be a name"
    );
    assert_eq!(
        answer(|m| m.functions[0].bytecode_length = 9),
        "BytecodeModuleDef.function_descriptors[0]: bytecode at 0 of 9 bytes; it must not be empty and must end within \
         bytecode_data of 8 bytes"
    );
    assert!(answer(|m| m.functions[0].bytecode_length = 0).contains("must not be empty"));
    assert!(
        answer(|m| m.functions[0].block_count = 0)
            .ends_with("block_count 0; a function has at least one block")
    );
    assert!(
        answer(|m| m.functions[0].ref_register_count = 0x4000)
            .ends_with("2 i32 and 16384 ref registers; the limits are 32767 and 16383")
    );
    let huge = answer(|m| m.global_bytes_capacity = i32::MAX as u32);
    assert!(huge.starts_with("ModuleStateDef.global_bytes_capacity: 2147483647; a file of "), "{huge}");
}

#[test]
fn containers() {
    let text = |file: &[u8]| read_module(Bytes::copy_from_slice(file)).unwrap_err().to_string();
    let good = write_module(&module(), &WriteOptions { polyglot_zip: false }).unwrap();
    assert!(text(b"").contains("0 bytes at offset 0, at least 16 needed"));
    assert!(text(&good[..100]).contains("bytes, but 96 follow"), "{}", text(&good[..100]));
    assert!(text(b"PK\x03\x04").contains("zip header of 30 bytes in a file of 4"));
    let cut = text(&good[..good.len() - 1]);
    assert!(
        cut.starts_with("BytecodeModuleDef.rodata_segments[1]: external data at 0 of 1000 bytes"),
        "{cut}"
    );
    assert!(text(&[b'x'; 64]).contains("size prefix at offset 0 says 2021161080 bytes, but 60 follow"));
}

#[test]
fn the_writer_refuses_what_does_not_fit() {
    let mut bad = module();
    bad.exports[0].ordinal = 1;
    let error = write_module(&bad, &WriteOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "export main: function 1 does not exist; there are 1");
    let mut bad = module();
    bad.global_ref_count = u32::MAX;
    let error = write_module(&bad, &WriteOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "ModuleStateDef.global_ref_count: 4294967295 does not fit; the limit is 2147483647");
}

fn executable() -> VulkanExecutable {
    let binding = DescriptorBinding { binding: 0, descriptor_type: 7, count: 1, stage_flags: 0x20 };
    let pipeline = Pipeline {
        name: "p".into(),
        entry_point: "main".into(),
        shader_module: 0,
        layout: 0,
        subgroup_size: 0,
        abi: DispatchAbi::Descriptors,
        bda: None,
        location: None,
    };
    VulkanExecutable {
        pipelines: vec![pipeline],
        set_layouts: vec![vec![binding]],
        pipeline_layouts: vec![PipelineLayout { set_layouts: vec![0], push_constants: Vec::new() }],
        shader_modules: vec![Bytes::from_static(&[3, 2, 0x23, 7])],
        source_files: vec![("a.comp".into(), Bytes::from_static(b"void main() {}"))],
    }
}

fn refusal(change: impl FnOnce(&mut VulkanExecutable)) -> String {
    let mut executable = executable();
    change(&mut executable);
    let data = write_vulkan_executable(&executable).unwrap();
    read_vulkan_executable(Bytes::from(data)).unwrap_err().to_string()
}

#[test]
fn executables() {
    let good = write_vulkan_executable(&executable()).unwrap();
    assert_eq!(read_vulkan_executable(Bytes::from(good.clone())).unwrap(), executable());
    let mut other = good.clone();
    other[4] = 1;
    let error = read_vulkan_executable(Bytes::from(other)).unwrap_err();
    assert!(error.is_incompatible());
    assert_eq!(
        error.to_string(),
        "Vulkan executable has wrapper version 1, this reader supports 0; compile the module again"
    );
    let error = read_vulkan_executable(Bytes::from(good[..good.len() - 1].to_vec())).unwrap_err();
    assert!(
        matches!(&error, VmfbError::ExecutableHeader { problem } if problem.ends_with("follow")),
        "{error}"
    );
    assert!(
        refusal(|e| e.pipeline_layouts[0].set_layouts[0] = 1).ends_with("layout ordinal 1, but there are 1")
    );
    assert!(refusal(|e| e.set_layouts[0][0].descriptor_type = 0).contains("binding 0: descriptor type 0; 6"));
    assert!(refusal(|e| e.set_layouts[0][0].count = 2).contains("array of 2"));
    assert!(refusal(|e| e.set_layouts[0][0].binding = 5000).contains("the highest supported number is 1023"));
    assert!(
        refusal(|e| {
            let twice = e.set_layouts[0][0];
            e.set_layouts[0].push(twice);
        })
        .ends_with("binding 0: declared twice")
    );
    assert!(
        refusal(|e| e.pipelines[0].subgroup_size = 3).contains("subgroup size 3; it is 0 or a power of two")
    );
    assert!(refusal(|e| e.pipelines[0].entry_point.clear()).contains("PipelineDef.entry_point is empty"));
}

#[test]
fn bda_layouts() {
    let bda = BdaLayout {
        abi_version: 1,
        root_offset: 0,
        root_length: 32,
        constant_offset: 32,
        constant_count: 2,
        bindings: vec![(16, 64), (1, 0)],
    };
    let with = |layout: BdaLayout| {
        let mut executable = executable();
        executable.pipelines[0].abi = DispatchAbi::BufferDeviceAddress;
        executable.pipelines[0].bda = Some(layout);
        read_vulkan_executable(Bytes::from(write_vulkan_executable(&executable).unwrap()))
    };
    assert_eq!(with(bda.clone()).unwrap().pipelines[0].bda.as_ref(), Some(&bda));
    let version = with(BdaLayout { abi_version: 2, ..bda.clone() }).unwrap_err();
    assert!(version.is_incompatible() && version.to_string().contains("BDA ABI version 2"));
    let text = |layout| with(layout).unwrap_err().to_string();
    assert!(
        text(BdaLayout { root_length: 16, ..bda.clone() })
            .contains("root struct of 16 bytes; version 1 has 32")
    );
    assert!(text(BdaLayout { constant_offset: 16, ..bda.clone() }).contains("overlap the root struct at 0"));
    assert!(text(BdaLayout { constant_count: u32::MAX, ..bda.clone() }).contains("push constants at 32 of"));
    assert!(
        text(BdaLayout { bindings: vec![(3, 0)], ..bda })
            .contains("minimum_alignment 3 is not a power of two")
    );
}

#[test]
fn pipelines_with_absent_bindings_are_bounded() {
    let mut executable = executable();
    let bda = BdaLayout {
        abi_version: 1,
        root_offset: 0,
        root_length: 32,
        constant_offset: 32,
        constant_count: 0,
        bindings: vec![(1, 0); 1025],
    };
    executable.pipelines[0].abi = DispatchAbi::BufferDeviceAddress;
    executable.pipelines[0].bda = Some(bda);
    let data = write_vulkan_executable(&executable).unwrap();
    let error = read_vulkan_executable(Bytes::from(data)).unwrap_err().to_string();
    assert!(error.ends_with("binding_count 1025; the limit is 1024"), "{error}");
}
