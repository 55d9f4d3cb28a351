//! Cases of operations on lists, globals and references.

use halite_abi::Result;
use halite_hal::Code;
use halite_vm::{
    Ref, Value,
    asm::{Arg, cell, moved, reference as r},
    isa::Op,
};

use super::program::{ANY, Assembled, BUFFER, F32, GLOBALS, I8, I64, LIST, buffer, show};
use crate::suites::{Cases, Outcome, Stop, case::same};

pub fn add(cases: &mut Cases) {
    for op in [Op::ListAlloc, Op::ListReserve, Op::ListResize, Op::ListSize] {
        cases.add(format!("list.{}", op.info().mnemonic), &[], |_| sizes());
    }
    cases.add("list.list.resize:size=too_large", &[], |_| too_large());
    let elements = [
        (Op::ListSetI32, Op::ListGetI32, I64, Value::I32(-5)),
        (Op::ListSetI64, Op::ListGetI64, I64, Value::I64(-6 << 40)),
        (Op::ListSetF32, Op::ListGetF32, F32, Value::F32(1.5)),
        (Op::ListSetF64, Op::ListGetF64, F32, Value::F64(-2.5)),
    ];
    for (set, get, ty, value) in elements {
        for op in [set, get] {
            let (ty, value) = (ty.clone(), value.clone());
            cases.add(format!("list.{}", op.info().mnemonic), &[], move |_| element(set, get, &ty, &value));
        }
    }
    cases.add("list.list.get.i32:list=i8", &[], |_| narrow_elements());
    for op in [Op::ListSetRef, Op::ListGetRef] {
        cases.add(format!("list.{}", op.info().mnemonic), &[], |_| references_in_lists());
    }
    cases.add("list.list.set.ref:value=itself", &[], |_| a_list_in_itself());
    globals(cases);
    for op in [Op::CmpEqRef, Op::CmpNeRef, Op::CmpNzRef] {
        cases.add(format!("ref.{}", op.info().mnemonic), &[], |_| comparisons());
    }
    cases.add("ref.assign.ref", &[], |_| copies_and_moves());
    cases.add("ref.discard.refs", &[], |_| discards());
    for op in [Op::ConstRefZero, Op::ConstRefRodata] {
        cases.add(format!("ref.{}", op.info().mnemonic), &[], |_| constants());
    }
    cases.add("ref.cast.any.ref", &[], |_| casts());
    cases.add("ref.select.ref", &[], |_| selects());
    cases.add("ref.switch.ref", &[], |_| switches());
}

/// A program with a list in r0, of this type and size.
fn with_list(convention: &str, ty: &Arg, size: i32) -> Result<Assembled> {
    let mut program = Assembled::new(convention);
    program.i(30, size)?.op(Op::ListAlloc, &[ty.clone(), cell(30).into(), r(0).into()])?;
    program.op(Op::ListResize, &[r(0).into(), cell(30).into()])?;
    Ok(program)
}

fn sizes() -> Outcome {
    let mut program = Assembled::new("0ii_iiir");
    program.op(Op::ListAlloc, &[I64, cell(0).into(), r(0).into()])?;
    program.op(Op::ListSize, &[r(0).into(), cell(2).into()])?;
    program.op(Op::ListReserve, &[r(0).into(), cell(1).into()])?;
    program.op(Op::ListSize, &[r(0).into(), cell(3).into()])?;
    program.op(Op::ListResize, &[r(0).into(), cell(1).into()])?;
    program.op(Op::ListSize, &[r(0).into(), cell(4).into()])?;
    let program = program.returns(&[cell(2), cell(3), cell(4), r(0)])?;
    for (capacity, size) in [(0, 0), (0, 5), (7, 3), (3, 7)] {
        program.gives(&[Value::I32(capacity), Value::I32(size)], &format!("0 0 {size} vm.list"))?;
    }
    Ok(())
}

fn too_large() -> Outcome {
    let mut program = Assembled::new("0i_v");
    program.i(1, 0)?.op(Op::ListAlloc, &[I64, cell(1).into(), r(0).into()])?;
    program.op(Op::ListResize, &[r(0).into(), cell(0).into()])?;
    let program = program.returns(&[])?;
    for size in [-1, i32::MAX] {
        program.fails(&[Value::I32(size)], Code::ResourceExhausted)?;
    }
    program.gives(&[Value::I32(10)], "")
}

/// The calling convention's letter of a value's type.
fn letter(value: &Value) -> char {
    match value {
        Value::I32(_) => 'i',
        Value::I64(_) => 'I',
        Value::F32(_) => 'f',
        Value::F64(_) => 'F',
        Value::Ref(_) => 'r',
    }
}

/// Zero of a value's type.
fn zero(value: &Value) -> Value {
    match value {
        Value::I32(_) => Value::I32(0),
        Value::I64(_) => Value::I64(0),
        Value::F32(_) => Value::F32(0.0),
        Value::F64(_) => Value::F64(0.0),
        Value::Ref(_) => Value::Ref(Ref::NULL),
    }
}

fn element(set: Op, get: Op, ty: &Arg, value: &Value) -> Outcome {
    let letter = letter(value);
    let mut program = with_list(&format!("0{letter}i_{letter}{letter}"), ty, 3)?;
    // The index lies behind one value or two cells.
    let index = if matches!(value, Value::I64(_) | Value::F64(_)) { cell(2) } else { cell(1) };
    program.op(set, &[r(0).into(), index.into(), cell(0).into()])?;
    program.op(get, &[r(0).into(), index.into(), cell(4).into()])?;
    program.i(8, 0)?.op(get, &[r(0).into(), cell(8).into(), cell(6).into()])?;
    let program = program.returns(&[cell(4), cell(6)])?;
    for index in [1, 2] {
        let wanted = show(&[value.clone(), zero(value)]);
        program.gives(&[value.clone(), Value::I32(index)], &wanted)?;
    }
    for index in [3, -1, i32::MAX, i32::MIN] {
        program.fails(&[value.clone(), Value::I32(index)], Code::OutOfRange)?;
    }
    Ok(())
}

/// Elements keep as many bits as their type has.
fn narrow_elements() -> Outcome {
    let mut program = with_list("0i_iI", &I8, 2)?;
    program.i(1, 1)?.op(Op::ListSetI32, &[r(0).into(), cell(1).into(), cell(0).into()])?;
    program.op(Op::ListGetI32, &[r(0).into(), cell(1).into(), cell(2).into()])?;
    program.op(Op::ListGetI64, &[r(0).into(), cell(1).into(), cell(4).into()])?;
    let program = program.returns(&[cell(2), cell(4)])?;
    for (value, kept) in [(5, 5), (0x1FF, -1), (0x80, -128), (-1, -1), (256, 0)] {
        program.gives(&[Value::I32(value)], &format!("{kept} {kept}l"))?;
    }
    let mut program = with_list("0v_f", &I64, 1)?;
    program.i(0, 0)?.op(Op::ListGetF32, &[r(0).into(), cell(0).into(), cell(2).into()])?;
    program.returns(&[cell(2)])?.fails(&[], Code::InvalidArgument)?;
    Ok(())
}

fn references_in_lists() -> Outcome {
    // Moved in; read as another type; then moved out, which leaves null.
    let mut program = Assembled::new("0r_rrrr");
    program.i(0, 1)?.i(1, 2)?.op(Op::ListAlloc, &[ANY, cell(1).into(), r(1).into()])?;
    program.op(Op::ListResize, &[r(1).into(), cell(1).into()])?;
    program.op(Op::ListSetRef, &[r(1).into(), cell(0).into(), moved(0).into()])?;
    program.op(Op::ListGetRef, &[r(1).into(), cell(0).into(), LIST, r(2).into()])?;
    program.op(Op::ListGetRef, &[r(1).into(), cell(0).into(), BUFFER, moved(3).into()])?;
    program.op(Op::ListGetRef, &[r(1).into(), cell(0).into(), BUFFER, r(4).into()])?;
    let program = program.returns(&[r(0), r(2), r(3), r(4)])?;
    program.gives(&[buffer(b"x")], "null null vm.buffer null")
}

fn a_list_in_itself() -> Outcome {
    let mut program = with_list("0v_i", &ANY, 1)?;
    program.i(1, 0)?.op(Op::ListSetRef, &[r(0).into(), cell(1).into(), r(0).into()])?;
    program.op(Op::ListSetRef, &[r(0).into(), cell(1).into(), moved(0).into()])?;
    program.op(Op::CmpNzRef, &[r(0).into(), cell(2).into()])?;
    program.returns(&[cell(2)])?.gives(&[], "0")
}

/// A global's operations: store and load by a number in the program, and by one at run time.
struct Global {
    direct: [Op; 2],
    indirect: [Op; 2],
    value: Value,
    /// Bytes of it.
    size: u32,
}

fn globals(cases: &mut Cases) {
    let all = [
        Global {
            direct: [Op::GlobalStoreI32, Op::GlobalLoadI32],
            indirect: [Op::GlobalStoreIndirectI32, Op::GlobalLoadIndirectI32],
            value: Value::I32(-5),
            size: 4,
        },
        Global {
            direct: [Op::GlobalStoreI64, Op::GlobalLoadI64],
            indirect: [Op::GlobalStoreIndirectI64, Op::GlobalLoadIndirectI64],
            value: Value::I64(-6 << 40),
            size: 8,
        },
        Global {
            direct: [Op::GlobalStoreF32, Op::GlobalLoadF32],
            indirect: [Op::GlobalStoreIndirectF32, Op::GlobalLoadIndirectF32],
            value: Value::F32(1.5),
            size: 4,
        },
        Global {
            direct: [Op::GlobalStoreF64, Op::GlobalLoadF64],
            indirect: [Op::GlobalStoreIndirectF64, Op::GlobalLoadIndirectF64],
            value: Value::F64(-2.5),
            size: 8,
        },
    ];
    for global in all {
        let global = std::sync::Arc::new(global);
        for op in global.direct {
            let global = global.clone();
            cases.add(format!("global.{}", op.info().mnemonic), &[], move |_| direct(&global));
        }
        for op in global.indirect {
            let global = global.clone();
            cases.add(format!("global.{}", op.info().mnemonic), &[], move |_| indirect(&global));
        }
    }
    for op in [Op::GlobalStoreRef, Op::GlobalLoadRef, Op::GlobalStoreIndirectRef, Op::GlobalLoadIndirectRef] {
        cases.add(format!("global.{}", op.info().mnemonic), &[], |_| references_in_globals());
    }
}

/// What is stored is kept from call to call, and is next to nothing else.
fn direct(global: &Global) -> Outcome {
    let ([store, load], letter) = (global.direct, letter(&global.value));
    let mut program = Assembled::new(&format!("0{letter}_{letter}{letter}{letter}"));
    let at = |place: u32| Arg::from(place * global.size);
    program.op(load, &[at(1), cell(2).into()])?.op(store, &[at(1), cell(0).into()])?;
    program.op(load, &[at(0), cell(4).into()])?.op(load, &[at(2), cell(6).into()])?;
    let program = program.returns(&[cell(2), cell(4), cell(6)])?;
    let none = zero(&global.value);
    let shown = |first: &Value| show(&[first.clone(), none.clone(), none.clone()]);
    program.gives(std::slice::from_ref(&global.value), &shown(&none))?;
    program.gives(std::slice::from_ref(&global.value), &shown(&global.value))
}

fn indirect(global: &Global) -> Outcome {
    let ([store, load], letter) = (global.indirect, letter(&global.value));
    let mut program = Assembled::new(&format!("0{letter}i_{letter}{letter}"));
    let place = if global.size == 8 { cell(2) } else { cell(1) };
    program.op(load, &[place.into(), cell(4).into()])?.op(store, &[place.into(), cell(0).into()])?;
    program.op(load, &[place.into(), cell(6).into()])?;
    let program = program.returns(&[cell(4), cell(6)])?;
    for place in (0..GLOBALS.0).step_by(global.size as usize) {
        let wanted = show(&[zero(&global.value), global.value.clone()]);
        program.gives(&[global.value.clone(), Value::I32(place as i32)], &wanted)?;
    }
    for place in [GLOBALS.0 as i32 - global.size as i32 + 1, GLOBALS.0 as i32, -1, i32::MIN] {
        program.fails(&[global.value.clone(), Value::I32(place)], Code::OutOfRange)?;
    }
    Ok(())
}

fn references_in_globals() -> Outcome {
    let mut program = Assembled::new("0r_rrrr");
    program.op(Op::GlobalStoreRef, &[0u32.into(), BUFFER, r(0).into()])?;
    program.i(0, 1)?.op(Op::GlobalStoreIndirectRef, &[cell(0).into(), BUFFER, moved(0).into()])?;
    program.op(Op::GlobalLoadRef, &[1u32.into(), BUFFER, moved(1).into()])?;
    program.op(Op::GlobalLoadIndirectRef, &[cell(0).into(), BUFFER, r(2).into()])?;
    program.op(Op::GlobalLoadRef, &[0u32.into(), BUFFER, r(3).into()])?;
    let program = program.returns(&[r(0), r(1), r(2), r(3)])?;
    program.gives(&[buffer(b"x")], "null vm.buffer null vm.buffer")?;
    let mut program = Assembled::new("0ri_v");
    program.op(Op::GlobalStoreIndirectRef, &[cell(0).into(), BUFFER, r(0).into()])?;
    let program = program.returns(&[])?;
    for place in [GLOBALS.1 as i32, -1] {
        program.fails(&[buffer(b"x"), Value::I32(place)], Code::OutOfRange)?;
    }
    let mut program = Assembled::new("0r_v");
    program.op(Op::GlobalStoreRef, &[0u32.into(), LIST, r(0).into()])?;
    program.returns(&[])?.fails(&[buffer(b"x")], Code::InvalidArgument)?;
    Ok(())
}

fn comparisons() -> Outcome {
    let mut program = Assembled::new("0rr_iii");
    program.op(Op::CmpEqRef, &[r(0).into(), r(1).into(), cell(0).into()])?;
    program.op(Op::CmpNeRef, &[r(0).into(), r(1).into(), cell(1).into()])?;
    program.op(Op::CmpNzRef, &[r(0).into(), cell(2).into()])?;
    let program = program.returns(&[cell(0), cell(1), cell(2)])?;
    let (a, b, null) = (buffer(b"x"), buffer(b"x"), Value::Ref(Ref::NULL));
    program.gives(&[a.clone(), a.clone()], "1 0 1")?;
    program.gives(&[a.clone(), b], "0 1 1")?;
    program.gives(&[a.clone(), null.clone()], "0 1 1")?;
    program.gives(&[null.clone(), a], "0 1 0")?;
    program.gives(&[null.clone(), null], "1 0 0")
}

fn copies_and_moves() -> Outcome {
    let mut program = Assembled::new("0r_rrri");
    program.op(Op::AssignRef, &[r(0).into(), r(1).into()])?;
    program.op(Op::AssignRef, &[moved(1).into(), r(2).into()])?;
    program.op(Op::CmpEqRef, &[r(0).into(), r(2).into(), cell(0).into()])?;
    program.returns(&[r(0), r(1), r(2), cell(0)])?.gives(&[buffer(b"x")], "vm.buffer null vm.buffer 1")
}

fn discards() -> Outcome {
    let mut program = Assembled::new("0rrr_rrr");
    program.op(Op::DiscardRefs, &[vec![r(0), r(2)].into()])?;
    let program = program.returns(&[r(0), r(1), r(2)])?;
    program.gives(&[buffer(b"a"), buffer(b"b"), buffer(b"c")], "null vm.buffer null")
}

fn constants() -> Outcome {
    let mut program = Assembled::new("0r_rri");
    program.op(Op::ConstRefZero, &[r(0).into()])?;
    program.op(Op::ConstRefRodata, &[0u32.into(), r(1).into()])?;
    program.op(Op::ConstRefRodata, &[0u32.into(), r(2).into()])?;
    program.op(Op::CmpEqRef, &[r(1).into(), r(2).into(), cell(0).into()])?;
    program.returns(&[r(0), r(1), cell(0)])?.gives(&[buffer(b"x")], "null vm.buffer 1")
}

fn casts() -> Outcome {
    let cast = |ty: Arg| -> std::result::Result<_, Stop> {
        let mut program = Assembled::new("0r_rr");
        program.op(Op::CastAnyRef, &[moved(0).into(), ty, r(1).into()])?;
        Ok(program.returns(&[r(0), r(1)])?)
    };
    cast(BUFFER)?.gives(&[buffer(b"x")], "null vm.buffer")?;
    cast(ANY)?.gives(&[buffer(b"x")], "null vm.buffer")?;
    cast(LIST)?.gives(&[Value::Ref(Ref::NULL)], "null null")?;
    cast(LIST)?.fails(&[buffer(b"x")], Code::InvalidArgument)?;
    Ok(())
}

/// The bytes of the chosen buffer, for programs that give one.
fn chosen(out: &[Value], wanted: &[u8]) -> Outcome {
    same("the chosen buffer", super::program::bytes_of(out.first())?, wanted.to_vec())
}

fn selects() -> Outcome {
    let mut program = Assembled::new("0irr_rrr");
    program.op(Op::SelectRef, &[cell(0).into(), BUFFER, r(0).into(), r(1).into(), r(2).into()])?;
    let program = program.returns(&[r(2), r(0), r(1)])?;
    for (condition, wanted) in [(1, b"a"), (-1, b"a"), (i32::MIN, b"a"), (0, b"b")] {
        let out = program.call(&[Value::I32(condition), buffer(b"a"), buffer(b"b")])?;
        chosen(&out, wanted)?;
        same("what is left", show(&out), "vm.buffer vm.buffer vm.buffer".to_owned())?;
    }
    Ok(())
}

fn switches() -> Outcome {
    let mut program = Assembled::new("0irrr_r");
    let list = vec![r(1), r(2)];
    program.op(Op::SwitchRef, &[cell(0).into(), BUFFER, r(0).into(), list.into(), r(3).into()])?;
    let program = program.returns(&[r(3)])?;
    for (index, wanted) in [(0, b"b"), (1, b"c"), (2, b"a"), (-1, b"a"), (i32::MAX, b"a")] {
        let out = program.call(&[Value::I32(index), buffer(b"a"), buffer(b"b"), buffer(b"c")])?;
        chosen(&out, wanted)?;
    }
    Ok(())
}
