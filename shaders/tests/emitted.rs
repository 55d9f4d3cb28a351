//! Kernels that are made at run time: valid SPIR-V, the same for the same operation and for shapes of the same kind, and
//! clear words about what cannot be made.

use std::{io::Write, process::Command};

use halite_ops::Operation;
use halite_shaders::{Plan, Variant, variants_of};

/// The variant that makes every type on every device.
fn quad() -> &'static Variant {
    variants_of("elementwise")
        .find(|variant| variant.name == "elementwise.quad")
        .expect("the variant is there")
}

fn plan(text: &str) -> Plan {
    let operation = Operation::parse(text).expect("an operation");
    quad().plan(&operation).expect("it can be made")
}

fn code(text: &str) -> Vec<u8> {
    plan(text).steps[0].module.to_bytes()
}

#[test]
fn every_sample_passes_the_checks_of_drivers() {
    for variant in variants_of("elementwise") {
        for sample in Operation::samples("elementwise") {
            let Ok(plan) = variant.plan(&sample) else { continue };
            let step = &plan.steps[0];
            let words = halite_spirv::words_from_bytes(&step.module.to_bytes()).unwrap();
            let facts = halite_spirv::analyze(&words).unwrap_or_else(|e| panic!("{sample}: {e}"));
            assert_eq!(facts.entry_points.len(), 1, "{sample}");
            assert!(step.push.len() <= 32, "{sample}");
        }
    }
}

/// With the validator of the SPIR-V tools, where it is installed.
#[test]
fn every_sample_passes_the_validator() {
    if Command::new("spirv-val").arg("--version").output().is_err() {
        eprintln!("SKIPPED: spirv-val (package spirv-tools) is not installed");
        return;
    }
    let folder = std::env::temp_dir().join(format!("halite-emitted-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let samples = Operation::samples("elementwise");
    let of = |sample| variants_of("elementwise").filter_map(move |v| Some((v, sample, v.plan(sample).ok()?)));
    for (index, (variant, sample, plan)) in samples.iter().flat_map(of).enumerate() {
        let file = folder.join(format!("{index}.spv"));
        let bytes = plan.steps[0].module.to_bytes();
        std::fs::File::create(&file).unwrap().write_all(&bytes).unwrap();
        let said = Command::new("spirv-val").args(["--target-env", "vulkan1.1"]).arg(&file).output().unwrap();
        let errors = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.success(), "{} of {sample}: {errors} ({})", variant.name, file.display());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn code_depends_on_the_kind_of_shape_only() {
    let with = |inputs: &str| code(&format!("elementwise:inputs={inputs},program=add $0 $1 -> %0:f32"));
    let rows = with("f32[33x64] f32[64]");
    assert_eq!(rows, with("f32[33x64] f32[64]"));
    assert_eq!(rows, with("f32[2x5x128] f32[128]"), "other sizes");
    assert_eq!(rows, with("f32[2x5x4x32] f32[1x4x32]"), "dimensions that merge");
    assert_ne!(rows, with("f32[33x65] f32[65]"), "rows that are not whole");
    assert_ne!(rows, with("f32[33x64] f32[33x1]"), "another dimension is broadcast");
    assert_ne!(rows, with("f16[33x64] f32[64]"), "another type");
    let twice = "elementwise:inputs=f32[8],program=exp $0; exp $0; add %0 %1 -> %2:f32";
    let once = "elementwise:inputs=f32[8],program=exp $0; add %0 %0 -> %1:f32";
    assert_eq!(code(twice), code(once), "equal nodes are computed once");
}

/// Mesa's compilers take twice as long, or four times, for each negation in a chain of products: llvmpipe's did not end.
#[test]
fn negations_are_taken_out_of_products() {
    for step in ["neg,mul", "mul,neg"] {
        let mut nodes: Vec<String> = Vec::new();
        for _ in 0..16 {
            for function in step.split(',') {
                let last = nodes.len().checked_sub(1).map_or("$0".to_owned(), |last| format!("%{last}"));
                nodes.push(match function {
                    "mul" => format!("mul {last} {last}"),
                    _ => format!("neg {last}"),
                });
            }
        }
        let last = nodes.len() - 1;
        let code = code(&format!("elementwise:inputs=f32[4],program={} -> %{last}:f32", nodes.join("; ")));
        let words = halite_spirv::words_from_bytes(&code).unwrap();
        let module = halite_spirv::Module::parse(&words).unwrap();
        let of = |op| module.insts().iter().filter(move |inst| inst.op == op);
        let negated: Vec<u32> = of(spirv::Op::FNegate).map(|inst| inst.id).collect();
        assert_eq!(of(spirv::Op::FMul).count(), 16, "{step}");
        let reads = |inst| module.operands(inst).iter().any(|id| negated.contains(id));
        assert!(!of(spirv::Op::FMul).any(reads), "{step}: a product of a negation");
    }
}

#[test]
fn large_grids_have_rows_of_the_same_length() {
    let grid = |elements: u64| {
        let step =
            plan(&format!("elementwise:inputs=u8[{elements}],program=not $0 -> %0:u8")).steps.remove(0);
        assert_eq!(step.push[0], elements);
        assert_eq!(step.push[1], step.grid[0] * 128);
        assert!(step.grid[0] <= 65535);
        step.grid
    };
    assert_eq!(grid(65535 * 512), [65535, 1, 1]);
    assert_eq!(grid(65536 * 512), [32768, 2, 1], "no row that is nearly empty");
    let [x, y, _] = grid(2_147_483_647);
    assert!(y > 1 && x * y - 2_147_483_647u64.div_ceil(512) < y);
}

#[test]
fn what_cannot_be_made_is_named() {
    let many = Operation::parse("elementwise:inputs=u8[3000000000],program=not $0 -> %0:u8").unwrap();
    let unfit = quad().plan(&many).unwrap_err();
    assert!(unfit.to_string().contains("not 3000000000"), "{unfit}");
    let error = |text: &str| Operation::parse(text).unwrap_err().to_string();
    let shapes = error("elementwise:inputs=f32[2x3] f32[2],program=add $0 $1 -> %0:f32");
    assert!(shapes.contains("input 1 has a dimension of 2 where others have 3"), "{shapes}");
    let program = error("elementwise:inputs=f32[2] i32[2],program=add $0 $1 -> %0:f32");
    assert!(program.contains("%0: 'add' of (f32, i32)"), "{program}");
    let none = error("elementwise:inputs=f32[2 3],program=-> $0:f32");
    assert!(none.contains("'f32[2' is no tensor"), "{none}");
}
