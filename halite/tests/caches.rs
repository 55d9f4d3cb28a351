//! The cache of compiled models: what it finds, what it must not find, and what it must leave alone.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::{fs, path::Path, time::SystemTime};

use crate::common::{device, onnx};
use halite::{Cache, Device, ErrorKind, Session, Tensor};

fn run(device: &Device, cache: &Cache, model: &Path) -> f32 {
    let session = Session::builder().device(device).cache(cache.clone()).model(model).build().unwrap();
    let out = session.run(Tensor::from_slice(&[1.0f32], 1).unwrap()).unwrap();
    out["y"].item().unwrap()
}

fn modules(cache: &Cache) -> usize {
    cache.list().unwrap().iter().filter(|entry| entry.kind == "vmfb").count()
}

#[test]
fn a_model_is_compiled_once_and_known_by_its_content() {
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("cache"));
    let (a, b) = (folder.path().join("a.onnx"), folder.path().join("b.onnx"));
    fs::write(&a, onnx::adds(1.0)).unwrap();
    fs::write(&b, onnx::adds(1.0)).unwrap();
    assert_eq!(
        (run(&device, &cache, &a), run(&device, &cache, &a), run(&device, &cache, &b)),
        (2.0, 2.0, 2.0)
    );
    assert_eq!(modules(&cache), 1, "the same model under another name is the same model");
    // Another model of the same size and date, as `cp -p` and unpacking leave them (finding H2).
    let date = fs::metadata(&a).unwrap().modified().unwrap();
    fs::write(&a, onnx::adds(5.0)).unwrap();
    fs::File::options().write(true).open(&a).unwrap().set_modified(date).unwrap();
    assert_eq!(run(&device, &cache, &a), 6.0);
    assert_eq!(modules(&cache), 2);
}

#[test]
fn a_new_folder_keeps_models_of_a_session_that_opens_its_own_device() {
    // Its driver makes a folder for pipelines in the cache before there is a model to keep.
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("cache"));
    let session = || {
        let uri = device.uri();
        Session::builder().device(uri.as_str()).cache(cache.clone()).model(onnx::adds(1.0)).build().unwrap()
    };
    for _ in 0..2 {
        let out = session().run(Tensor::from_slice(&[1.0f32], 1).unwrap()).unwrap();
        assert_eq!(out["y"].item::<f32>().unwrap(), 2.0);
        assert_eq!(modules(&cache), 1);
    }
}

#[test]
fn a_version_for_many_sizes_is_found_by_those_that_it_holds_for() {
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("cache"));
    let sums = |lengths: [usize; 2]| {
        let model = onnx::adds(1.0);
        let session = Session::builder().device(&device).cache(cache.clone()).model(model).build().unwrap();
        for length in lengths {
            let out = session.run(Tensor::from_vec(vec![2.0f32; length], length).unwrap()).unwrap();
            assert_eq!(out["y"].to_vec::<f32>().unwrap(), vec![3.0; length]);
        }
        modules(&cache)
    };
    // The first size has a module of its own. That of the second is for 3 to 15, and one made for 5 would be for 4 to 15.
    assert_eq!((sums([9, 3]), sums([9, 5]), sums([9, 14])), (2, 2, 2));
    assert_eq!((sums([9, 16]), sums([9, 60])), (3, 3));
}

#[test]
fn weights_in_files_of_their_own_count_too_and_are_not_copied() {
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("cache"));
    let model = folder.path().join("m.onnx");
    let width = 256;
    fs::write(&model, onnx::product(width, 2.0)).unwrap();
    let go = || {
        let session = Session::builder().device(&device).cache(cache.clone()).model(&model).build().unwrap();
        let out = session.run(Tensor::from_vec(vec![1.0f32; width], [1, width]).unwrap()).unwrap();
        out["y"].to_vec::<f32>().unwrap()[0]
    };
    assert_eq!((go(), go()), (512.0, 512.0));
    let kept: u64 = cache.list().unwrap().iter().map(|entry| entry.bytes).sum();
    assert!(kept < (width * width * 4) as u64, "{kept} bytes are kept, the weights are among them");
    fs::write(&model, onnx::product(width, 3.0)).unwrap();
    assert_eq!(go(), 768.0);
}

#[test]
fn damaged_entries_heal() {
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("cache");
    let cache = Cache::at(&place);
    let model = folder.path().join("m.onnx");
    fs::write(&model, onnx::adds(1.0)).unwrap();
    assert_eq!(run(&device, &cache, &model), 2.0);
    let damages: [fn(&mut Vec<u8>); 5] = [
        |bytes| bytes.clear(),
        |bytes| bytes.truncate(bytes.len() / 2),
        |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 0x40;
        },
        |bytes| {
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
        },
        // What the model adds, wherever a program has it: without a digest the model would give another number.
        |bytes| {
            let (one, two) = (1.0f32.to_le_bytes(), 2.0f32.to_le_bytes());
            let places: Vec<usize> = (0..bytes.len() - 3).filter(|at| bytes[*at..*at + 4] == one).collect();
            places.into_iter().for_each(|at| bytes[at..at + 4].copy_from_slice(&two));
        },
    ];
    for damage in damages {
        for entry in fs::read_dir(&place).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            if path.file_name().unwrap() != "CACHEDIR.TAG" {
                damage(&mut bytes);
                fs::write(&path, bytes).unwrap();
            }
        }
        assert_eq!((run(&device, &cache, &model), run(&device, &cache, &model)), (2.0, 2.0));
        assert_eq!(modules(&cache), 1, "it is there again");
    }
}

#[test]
fn files_of_others_are_never_touched() {
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("m.onnx");
    fs::write(&model, onnx::adds(1.0)).unwrap();
    // A folder with files of its own is no cache (finding H1): it is refused, and the model runs all the same.
    let home = folder.path().join("home");
    fs::create_dir(&home).unwrap();
    fs::write(home.join("thesis.tex"), "words").unwrap();
    let cache = Cache::at(&home);
    assert_eq!(cache.check().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(run(&device, &cache, &model), 2.0);
    assert_eq!(fs::read_dir(&home).unwrap().count(), 1);
    // What is put into a cache later stays, however full the cache is and however old the file.
    let place = folder.path().join("cache");
    let cache = Cache::at(&place).limit(1);
    cache.check().unwrap();
    let thesis = place.join("thesis.tex");
    fs::write(&thesis, "words").unwrap();
    fs::File::options().write(true).open(&thesis).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!((run(&device, &cache, &model), run(&device, &cache, &model)), (2.0, 2.0));
    cache.clear().unwrap();
    assert_eq!(fs::read_to_string(&thesis).unwrap(), "words");
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_what_is_kept() {
    use std::os::unix::fs::PermissionsExt;

    let Some(device) = device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("cache");
    let model = folder.path().join("m.onnx");
    fs::write(&model, onnx::adds(1.0)).unwrap();
    run(&device, &Cache::at(&place), &model);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place), 0o700);
    for entry in fs::read_dir(&place).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap() != "CACHEDIR.TAG" {
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

/// A model of `y = x + c` whose `c` is in a file of its own.
fn with_external_weight(folder: &Path, constant: f32) -> std::path::PathBuf {
    let entry = |key: &str, value: &str| {
        onnx::bytes(13, &[onnx::bytes(1, key.as_bytes()), onnx::bytes(2, value.as_bytes())].concat())
    };
    let tensor = [
        onnx::number(1, 1),
        onnx::number(2, 1),
        onnx::bytes(8, b"c"),
        entry("location", "w.bin"),
        entry("length", "4"),
        onnx::number(14, 1),
    ];
    let model = onnx::model(&[
        onnx::node("Add", &["x", "c"], &["y"]),
        onnx::bytes(5, &tensor.concat()),
        onnx::value(11, "x", &["n"]),
        onnx::value(12, "y", &["n"]),
    ]);
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("w.bin"), constant.to_le_bytes()).unwrap();
    fs::write(folder.join("m.onnx"), model).unwrap();
    folder.join("m.onnx")
}

#[test]
fn the_same_graph_with_other_weights_beside_it_is_another_model() {
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("cache"));
    let a = with_external_weight(&folder.path().join("a"), 1.0);
    let b = with_external_weight(&folder.path().join("b"), 5.0);
    for _ in 0..2 {
        assert_eq!((run(&device, &cache, &a), run(&device, &cache, &b)), (2.0, 6.0));
    }
    assert_eq!(modules(&cache), 2, "neither takes the other's place");
    fs::write(folder.path().join("a/w.bin"), 9.0f32.to_le_bytes()).unwrap();
    assert_eq!(run(&device, &cache, &a), 10.0);
}

#[test]
fn values_that_decide_sizes_are_part_of_what_is_kept() {
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path().join("cache"));
    // `y` has the shape that the values of `s` say.
    let int64 = |field: u8, name: &str, size: &str| {
        let dim = onnx::bytes(1, &onnx::number(1, size.parse().unwrap()));
        let tensor = [onnx::number(1, 7), onnx::bytes(2, &dim)].concat();
        onnx::bytes(
            field,
            &[onnx::bytes(1, name.as_bytes()), onnx::bytes(2, &onnx::bytes(1, &tensor))].concat(),
        )
    };
    let model = onnx::model(&[
        onnx::node("Reshape", &["x", "s"], &["y"]),
        onnx::value(11, "x", &["6"]),
        int64(11, "s", "2"),
        onnx::value(12, "y", &["a", "b"]),
    ]);
    let shape = |values: [i64; 2]| {
        let session =
            Session::builder().device(&device).cache(cache.clone()).model(model.clone()).build().unwrap();
        let x = Tensor::from_slice(&[1.0f32; 6], 6).unwrap();
        let out = session.run([("x", x), ("s", Tensor::from_slice(&values, 2).unwrap())]).unwrap();
        out["y"].shape().to_vec()
    };
    for _ in 0..2 {
        assert_eq!((shape([2, 3]), shape([3, 2]), shape([1, 6])), (vec![2, 3], vec![3, 2], vec![1, 6]));
    }
}

#[test]
fn a_folder_that_goes_and_clocks_that_jump_change_no_results() {
    let Some(device) = device() else { return };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("cache");
    let cache = Cache::at(&place);
    let session =
        Session::builder().device(&device).cache(cache.clone()).model(onnx::adds(1.0)).build().unwrap();
    let call = |length: usize| {
        let out = session.run(Tensor::from_slice(&vec![1.0f32; length], length).unwrap()).unwrap();
        assert_eq!(out["y"].to_vec::<f32>().unwrap(), vec![2.0; length]);
    };
    call(1);
    fs::remove_dir_all(&place).unwrap();
    // Sizes that come again, and a new kind of size, which is compiled.
    call(1);
    call(4);
    // What was kept in the future, or long ago, is found, and kept further.
    let file = folder.path().join("a.onnx");
    fs::write(&file, onnx::adds(2.0)).unwrap();
    assert_eq!(run(&device, &cache, &file), 3.0);
    let day = std::time::Duration::from_secs(24 * 3600);
    for date in [SystemTime::UNIX_EPOCH + day, SystemTime::now() + 20_000 * day] {
        for entry in fs::read_dir(&place).unwrap().map(Result::unwrap).filter(|own| own.path().is_file()) {
            let opened = fs::File::options().write(true).open(entry.path()).unwrap();
            opened.set_modified(date).unwrap();
        }
        fs::File::options().write(true).open(&file).unwrap().set_modified(date).unwrap();
        let count = modules(&cache);
        assert_eq!(run(&device, &cache, &file), 3.0);
        assert_eq!(modules(&cache), count, "it was found");
        // Another model of the same size, written "before" it was kept.
        fs::write(&file, onnx::adds(4.0)).unwrap();
        fs::File::options().write(true).open(&file).unwrap().set_modified(date).unwrap();
        assert_eq!(run(&device, &cache, &file), 5.0);
        fs::write(&file, onnx::adds(2.0)).unwrap();
    }
}
