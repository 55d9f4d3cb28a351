//! The target decides which variant is chosen: for the documented triples and Hopper, and for operations of several kinds.

use std::collections::BTreeSet;

use halite_ops::{
    DType, Operation, arg_reduce::ArgReduce, cumulative_sum::CumulativeSum, line_codes::LineCodes,
    matmul::MatMul, norm::Norm, reduce::Reduce, softmax::Softmax,
};
use halite_shaders::{Plan, Tuning, rank};
use halite_sizes::{Size, Trace};
use halite_targets::{Capabilities, Target};

const TRIPLES: [&str; 6] = [
    "valhall-g78-android30",
    "adreno-unknown-android30",
    "rdna1-5700xt-linux",
    "ampere-rtx3080-windows",
    "cpu-swiftshader-unknown",
    "hopper-h200-linux",
];

const OPERATIONS: [&str; 6] = [
    "matmul:m=4096,n=4096,k=4096,lhs=f16,rhs=f16",
    "matmul:m=4096,n=4096,k=4096,lhs=i8,rhs=i8,out=i32",
    "matmul:m=1024,n=1024,k=1024,lhs=bf16,rhs=bf16",
    "conv2d:input=1x64x56x56,filter=64x64x3x3",
    "conv2d:input=1x64x56x56,filter=64x64x3x3,dtype=f16",
    "attention:batch=1,heads=32,q_len=1024,kv_len=1024,head_dim=128,dtype=f16",
];

fn target(triple: &str) -> Capabilities {
    Capabilities::of(Target::parse(triple).expect("the triple is known"))
}

fn chosen(operation: &str, triple: &str) -> &'static str {
    let operation = Operation::parse(operation).expect("it is an operation");
    let ranked = rank(&operation, &target(triple), Tuning::shipped());
    let first = ranked.first().expect("there are variants");
    assert!(first.plan().is_some(), "nothing computes {operation} on {triple}");
    &first.variant.name
}

#[test]
fn each_target_has_choices_of_its_own() {
    let profiles: BTreeSet<Vec<&str>> = TRIPLES
        .iter()
        .map(|triple| OPERATIONS.iter().map(|operation| chosen(operation, triple)).collect())
        .collect();
    assert_eq!(profiles.len(), TRIPLES.len(), "{profiles:#?}");
}

#[test]
fn matrix_units_are_used_where_there_are_any() {
    let matmul = |triple| chosen(OPERATIONS[0], triple);
    for triple in ["ampere-rtx3080-windows", "hopper-h200-linux"] {
        assert!(matmul(triple).starts_with("matmul.f16_f32.coop"), "{triple}: {}", matmul(triple));
    }
    for triple in ["valhall-g78-android30", "rdna1-5700xt-linux", "cpu-swiftshader-unknown"] {
        assert!(!matmul(triple).contains("coop"), "{triple}: {}", matmul(triple));
    }
}

#[test]
fn devices_without_16_bit_storage_get_packed_kernels() {
    assert!(chosen(OPERATIONS[4], "cpu-swiftshader-unknown").contains("packed"));
    assert!(!chosen(OPERATIONS[4], "hopper-h200-linux").contains("packed"));
}

#[test]
fn valhall_uses_no_shared_memory_for_convolutions() {
    assert_eq!(chosen(OPERATIONS[3], "valhall-g78-android30"), "conv2d.f32.strips3x3");
    assert_eq!(
        chosen("conv2d:input=1x32x112x112,filter=32x1x3x3,groups=32", "valhall-g78-android30"),
        "conv2d.f32.depthwise3x3s1"
    );
}

#[test]
fn heads_of_few_filters_share_their_windows_on_processors() {
    for filters in [1, 2, 4, 8] {
        let text = format!("conv2d:input=8x48x32x32,filter={filters}x48x3x3,pads=1x1x1x1");
        assert_eq!(chosen(&text, "cpu-llvmpipe-linux"), "conv2d.f32.patches8x4x4s1.s8", "{text}");
    }
    // In groups, many are lost.
    let text = "conv2d:input=1x64x32x32,filter=64x4x3x3,pads=1x1x1x1,groups=16";
    assert!(!chosen(text, "cpu-llvmpipe-linux").contains("patches"), "{text}");
}

#[test]
fn every_sample_runs_on_every_target() {
    // In the short form each sample on every third target.
    let step = if std::env::var_os("HALITE_TEST_THOROUGH").is_some() { 1 } else { 3 };
    for name in Operation::NAMES {
        for (place, sample) in Operation::samples(name).into_iter().enumerate() {
            for triple in TRIPLES.iter().skip(place % step).step_by(step) {
                let ranked = rank(&sample, &target(triple), Tuning::shipped());
                assert!(ranked.first().is_some_and(|c| c.plan().is_some()), "{sample} on {triple}");
            }
        }
    }
}

/// Operations that only move elements take all types by their size.
#[test]
fn elements_of_every_type_can_be_moved() {
    let names =
        ["copy", "concat", "pad", "gather", "gather_elements", "gather_nd", "scatter_elements", "scatter_nd"];
    for name in names {
        // Of a type that is written out, as it is not the default one.
        let samples = Operation::samples(name);
        let text = samples.iter().map(ToString::to_string).find(|text| text.contains("dtype=i64"));
        let text = text.unwrap_or_else(|| panic!("{name} has a sample of i64"));
        for dtype in DType::ALL {
            let text = text.replace("dtype=i64", &format!("dtype={dtype}"));
            for triple in TRIPLES {
                chosen(&text, triple);
            }
        }
    }
}

/// What a product of open rows is planned as on a device that runs on a processor.
fn open_product(text: &str, triple: &str, rows: Size) -> (&'static str, Plan) {
    let Operation::MatMul(own) = Operation::parse(text).expect("it is an operation") else {
        panic!("{text}")
    };
    let operation = Operation::MatMul(MatMul { m: rows, ..own });
    let ranked = rank(&operation, &target(triple), Tuning::shipped());
    let first = ranked.first().expect("there are variants");
    (&first.variant.name, first.plan().expect("it runs").clone())
}

#[test]
fn products_of_rows_that_callers_or_data_decide_have_the_kernel_of_fixed_ones() {
    let numbers = |sizes: &[Size]| sizes.iter().map(|size| size.value()).collect::<Vec<_>>();
    for (text, triple) in [
        ("matmul:m=24,n=1024,k=1024,rhs_transposed=true,bias=true", "cpu-llvmpipe-linux"),
        ("matmul:m=24,n=256,k=256", "cpu-llvmpipe-linux"),
        ("matmul:m=24,n=256,k=256,bias=true", "cpu-swiftshader-unknown"),
    ] {
        let (name, fixed) = open_product(text, triple, Size::constant(24));
        assert!(name.starts_with("matmul.f32.exchange"), "{name}");
        let trace = Trace::new();
        let _entered = trace.enter();
        let called = trace.symbol("rows", 24, 16, 63);
        for rows in [called, trace.data_symbol("count", 24, 0, 63)] {
            let (open_name, open) = open_product(text, triple, rows);
            assert_eq!(open_name, name);
            let [step] = &open.steps[..] else { panic!("{} steps", open.steps.len()) };
            assert_eq!(numbers(&step.push), numbers(&fixed.steps[0].push));
            assert_eq!(numbers(&step.grid), numbers(&fixed.steps[0].grid));
            assert_eq!(step.constants, fixed.steps[0].constants);
            // What the kernel asks the number for, and its workgroups, follow it.
            assert!(step.push.contains(&rows) && step.grid.iter().any(|groups| !groups.is_constant()));
        }
        assert!([16, 17, 24, 63].iter().all(|rows| trace.region().has(&[*rows])), "{:?}", trace.guards());
    }
}

#[test]
fn products_of_few_rows_that_data_decide_are_not_a_row_at_a_time() {
    let trace = Trace::new();
    let _entered = trace.enter();
    let text = "matmul:m=1,n=1024,k=1024,rhs_transposed=true";
    let (name, plan) = open_product(text, "cpu-llvmpipe-linux", trace.data_symbol("count", 1, 0, 300));
    assert!(name.starts_with("matmul.f32.exchange."), "{name}");
    assert_eq!(plan.steps[0].constants[3], 8);
}

/// Operations along lines of this length, of all families.
fn along(length: Size) -> Vec<Operation> {
    [
        "line_codes:outer=1,length=51200,rule=whole,least=0,most=255,codes=u8",
        "reduce:kind=sum,outer=2,length=51200,inner=1,dtype=f32",
        "reduce:kind=max,outer=2,length=51200,inner=12,dtype=f16",
        "reduce:kind=log_sum_exp,outer=2,length=51200,inner=1,dtype=f32",
        "arg_reduce:outer=3,length=51200,inner=2,dtype=f32,indices=i64",
        "softmax:outer=9,length=51200,inner=1,dtype=f32",
        "norm:kind=group,batch=1,channels=8,spatial=51200,groups=8,scale=true,bias=true,epsilon=1e-5,dtype=f32",
        "cumulative_sum:outer=1,length=51200,inner=1,dtype=f32",
    ]
    .into_iter()
    .map(|text| match Operation::parse(text).expect("it is an operation") {
        Operation::LineCodes(op) => Operation::LineCodes(LineCodes { length, ..op }),
        Operation::Reduce(op) => Operation::Reduce(Reduce { length, ..op }),
        Operation::ArgReduce(op) => Operation::ArgReduce(ArgReduce { length, ..op }),
        Operation::Softmax(op) => Operation::Softmax(Softmax { length, ..op }),
        Operation::Norm(op) => Operation::Norm(Norm { spatial: length, ..op }),
        Operation::CumulativeSum(op) => Operation::CumulativeSum(CumulativeSum { length, ..op }),
        other => panic!("{other} has no lines"),
    })
    .collect()
}

#[test]
fn lines_of_any_length_that_data_decide_are_read_to_their_end() {
    for triple in ["cpu-llvmpipe-linux", "vp-vulkan_1_1-unknown"] {
        let target = target(triple);
        let trace = Trace::new();
        let _entered = trace.enter();
        for operation in along(trace.data_symbol("count", 51_200, 0, 1 << 30)) {
            // Pieces of codes bind five buffers, and room for a copy of an input without a bound is nowhere.
            if operation.name() == "line_codes" && target.max_storage_buffers < 5 {
                continue;
            }
            let ranked = rank(&operation, &target, Tuning::shipped());
            let first = ranked.first().expect("there are variants");
            let plan = first.plan().expect("it runs");
            // A workgroup that goes through all of a line would be ended by this driver before it has.
            let name = &first.variant.name;
            assert!(name.ends_with("split.any"), "{operation} on {triple}: {name}");
            assert!(plan.turns.is_at_most(target.max_loop_turns.into()), "{name}: {}", plan.turns);
            assert!(plan.steps[0].grid[2].least() >= 1, "{name}: lines of nothing have a piece");
        }
    }
}

#[test]
fn lines_are_whole_where_nothing_ends_loops() {
    let target = target("hopper-h200-linux");
    let trace = Trace::new();
    let _entered = trace.enter();
    for operation in along(trace.data_symbol("count", 51_200, 0, 1 << 30)) {
        let ranked = rank(&operation, &target, Tuning::shipped());
        let name = &ranked.first().expect("there are variants").variant.name;
        assert!(!name.contains("split"), "{operation}: {name}");
    }
}

#[test]
fn lines_that_data_keep_short_are_not_cut() {
    let target = target("cpu-llvmpipe-linux");
    let trace = Trace::new();
    let _entered = trace.enter();
    for operation in along(trace.data_symbol("count", 300, 0, 4096)) {
        let ranked = rank(&operation, &target, Tuning::shipped());
        let name = &ranked.first().expect("there are variants").variant.name;
        assert!(!name.contains("split"), "{operation}: {name}");
    }
}
