//! Programs of a made-up code format on threads: every workgroup once, order, failures, deadlines.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use halite_hal::*;

use crate::{
    LocalDriver,
    code::{Call, Code, Needs, Worker, workgroup_position},
    executable::LocalExecutable,
};

/// Code that counts how often each workgroup ran.
#[derive(Debug)]
struct Counting {
    functions: Vec<FunctionInfo>,
    needs: Needs,
    runs: Vec<AtomicU32>,
    running: AtomicU32,
    overlapped: AtomicBool,
    /// Workgroup that fails.
    fails_at: u64,
    /// Workgroup that panics.
    panics_at: u64,
    /// Rounds that a workgroup wastes.
    work: u32,
}

const MOST: usize = 10_000;

fn counting(needs: Needs) -> Counting {
    let function = FunctionInfo {
        name: "count".to_owned(),
        binding_count: 0,
        constant_count: 1,
        workgroup_size: [1, 1, 1],
    };
    Counting {
        functions: vec![function],
        needs,
        runs: (0..MOST).map(|_| AtomicU32::new(0)).collect(),
        running: AtomicU32::new(0),
        overlapped: AtomicBool::new(false),
        fails_at: u64::MAX,
        panics_at: u64::MAX,
        work: 20,
    }
}

const PARALLEL: Needs = Needs { local_memory: 0, parallel: true };

impl Counting {
    fn all_ran(&self, times: u32, workgroups: usize) -> bool {
        self.runs.iter().enumerate().all(|(i, n)| n.load(SeqCst) == if i < workgroups { times } else { 0 })
    }
}

impl Code for Counting {
    fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    fn needs(&self, _function: usize) -> Needs {
        self.needs
    }

    fn run(&self, call: &Call<'_>, workgroups: Range<u64>, worker: &mut Worker<'_>) -> Result<()> {
        assert_eq!(call.constants, [7]);
        let mine = workgroups.start as u8;
        worker.local_memory.fill(mine);
        for workgroup in workgroups {
            if self.running.fetch_add(1, SeqCst) > 0 {
                self.overlapped.store(true, SeqCst);
            }
            for _ in 0..self.work {
                std::hint::black_box(workgroup_position(call.counts, workgroup));
            }
            self.running.fetch_sub(1, SeqCst);
            if workgroup == self.fails_at {
                bail!(DataLoss, "workgroup {workgroup} fails");
            }
            assert_ne!(workgroup, self.panics_at, "a panic that a test asked for");
            self.runs[workgroup as usize].fetch_add(1, SeqCst);
        }
        assert!(worker.local_memory.iter().all(|b| *b == mine), "local memory is nobody else's");
        Ok(())
    }
}

fn device(threads: &str, spin: &str) -> Arc<dyn Device> {
    let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
    LocalDriver::TASK.open("", &Options::from([pair("threads", threads), pair("spin_us", spin)])).unwrap()
}

fn devices() -> Vec<Arc<dyn Device>> {
    let mut devices = vec![LocalDriver::SYNC.open("", &Options::new()).unwrap()];
    devices.extend([("1", "50"), ("2", "50"), ("4", "1000"), ("4", "0")].map(|(t, s)| device(t, s)));
    devices
}

/// A command buffer of dispatches with these counts.
fn record(device: &Arc<dyn Device>, code: &Arc<Counting>, counts: &[[u32; 3]]) -> Arc<dyn CommandBuffer> {
    let executable: Arc<dyn Executable> = Arc::new(LocalExecutable::with_code(device.id(), code.clone()));
    let dispatch = |counts: &[u32; 3]| Command::Dispatch {
        executable: executable.clone(),
        function: 0,
        counts: DispatchCounts::Direct(*counts),
        constants: [7].into_iter().collect(),
        bindings: Default::default(),
        flags: DispatchFlags::empty(),
    };
    let list = CommandList {
        mode: CommandBufferMode::empty(),
        categories: CommandCategory::ANY,
        affinity: QueueAffinity::ANY,
        binding_capacity: 0,
        commands: counts.iter().map(dispatch).collect(),
    };
    device.create_command_buffer(list).unwrap()
}

fn submit(device: &Arc<dyn Device>, command_buffer: &Arc<dyn CommandBuffer>) -> Fence {
    let end = Fence::new(device.create_semaphore(0).unwrap(), 1);
    let op = QueueOp::Execute { command_buffer: command_buffer.clone(), bindings: BindingTable::default() };
    device.queue_submit(QueueAffinity::ANY, &Fence::default(), &end, op).unwrap();
    end
}

fn run(device: &Arc<dyn Device>, command_buffer: &Arc<dyn CommandBuffer>) -> Result<()> {
    submit(device, command_buffer).wait(Deadline::after(Duration::from_secs(60)))
}

#[test]
fn every_workgroup_runs_exactly_once() {
    for device in devices() {
        for counts in [[1, 1, 1], [2, 1, 1], [1, 3, 1], [7, 3, 2], [64, 1, 1], [10, 10, 10], [100, 100, 1]] {
            let code = Arc::new(counting(Needs { local_memory: 4096, parallel: true }));
            let commands = record(&device, &code, &[counts, [0, 5, 5], counts, counts]);
            for _ in 0..5 {
                run(&device, &commands).unwrap();
            }
            let workgroups = counts.iter().product::<u32>() as usize;
            assert!(code.all_ran(15, workgroups), "{counts:?} on {device:?}: {:?}", &code.runs[..10]);
        }
    }
}

#[test]
fn sequential_functions_never_overlap() {
    for device in devices() {
        let code = Arc::new(counting(Needs { local_memory: 64, parallel: false }));
        let commands = record(&device, &code, &[[100, 1, 1]; 20]);
        run(&device, &commands).unwrap();
        assert!(code.all_ran(20, 100));
        assert!(!code.overlapped.load(SeqCst));
    }
}

#[test]
fn dispatches_of_a_program_never_overlap_each_other() {
    // Workgroup 0 of a dispatch cannot run before the last one of the dispatch before it has ended: the counts of
    // complete rounds are equal whenever one begins.
    #[derive(Debug)]
    struct Ordered(Counting);
    impl Code for Ordered {
        fn functions(&self) -> &[FunctionInfo] {
            &self.0.functions
        }
        fn needs(&self, function: usize) -> Needs {
            self.0.needs(function)
        }
        fn run(&self, call: &Call<'_>, workgroups: Range<u64>, worker: &mut Worker<'_>) -> Result<()> {
            let before = self.0.runs[workgroups.start as usize].load(SeqCst);
            let slowest = self.0.runs[..50].iter().map(|n| n.load(SeqCst)).min();
            if slowest.is_some_and(|n| n < before) {
                bail!(Internal, "a workgroup of the dispatch before is still to run");
            }
            self.0.run(call, workgroups, worker)
        }
    }
    for device in devices() {
        let code = Arc::new(Ordered(counting(PARALLEL)));
        let executable: Arc<dyn Executable> = Arc::new(LocalExecutable::with_code(device.id(), code.clone()));
        let dispatch = Command::Dispatch {
            executable,
            function: 0,
            counts: DispatchCounts::Direct([50, 1, 1]),
            constants: [7].into_iter().collect(),
            bindings: Default::default(),
            flags: DispatchFlags::empty(),
        };
        let list = CommandList {
            mode: CommandBufferMode::empty(),
            categories: CommandCategory::ANY,
            affinity: QueueAffinity::ANY,
            binding_capacity: 0,
            commands: vec![dispatch; 200],
        };
        run(&device, &device.create_command_buffer(list).unwrap()).unwrap();
        assert!(code.0.all_ran(200, 50));
    }
}

#[test]
fn a_failing_workgroup_fails_the_fence_and_nothing_else() {
    for device in devices() {
        let bad = Arc::new(Counting { fails_at: 33, ..counting(PARALLEL) });
        let good = Arc::new(counting(PARALLEL));
        let (bad_commands, good_commands) =
            (record(&device, &bad, &[[50, 1, 1]; 3]), record(&device, &good, &[[50, 1, 1]; 3]));
        for round in 1..20 {
            let status = run(&device, &bad_commands).unwrap_err();
            assert_eq!(status.code(), halite_hal::Code::DataLoss);
            assert!(status.to_string().contains("dispatch of 'count'"), "{status}");
            run(&device, &good_commands).unwrap();
            assert!(good.all_ran(3 * round, 50));
        }
        // Nothing ran after the first dispatch of a program failed.
        assert!(bad.runs.iter().all(|n| n.load(SeqCst) < 20));
    }
}

#[test]
fn a_panic_in_code_is_a_failure_of_its_dispatch() {
    for device in devices() {
        let bad = Arc::new(Counting { panics_at: 33, ..counting(PARALLEL) });
        let good = Arc::new(counting(PARALLEL));
        let commands = record(&device, &bad, &[[50, 1, 1]; 2]);
        for round in 1..5 {
            let status = run(&device, &commands).unwrap_err();
            assert_eq!(status.code(), halite_hal::Code::Internal);
            run(&device, &record(&device, &good, &[[50, 1, 1]])).unwrap();
            assert!(good.all_ran(round, 50));
        }
    }
}

#[test]
fn a_wait_with_a_deadline_leaves_the_rest_to_the_pool() {
    for threads in ["1", "3"] {
        let device = device(threads, "50");
        let code = Arc::new(Counting { work: 2_000, ..counting(PARALLEL) });
        let commands = record(&device, &code, &[[10, 1, 1]; 100]);
        let end = submit(&device, &commands);
        while let Err(status) = end.wait(Deadline::after(Duration::from_micros(300))) {
            assert_eq!(status.code(), halite_hal::Code::DeadlineExceeded);
        }
        assert!(code.all_ran(100, 10));
        let left_alone = submit(&device, &commands);
        let late = left_alone.wait(Deadline::Now);
        assert!(late.is_ok() || late.is_err_and(|e| e.code() == halite_hal::Code::DeadlineExceeded));
        drop(device);
        left_alone.wait(Deadline::after(Duration::from_secs(60))).unwrap();
        assert!(code.all_ran(200, 10));
    }
}

#[test]
fn many_threads_share_one_device() {
    for device in devices() {
        let code = Arc::new(counting(PARALLEL));
        let commands = record(&device, &code, &[[40, 1, 1]; 5]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..20).for_each(|_| run(&device, &commands).unwrap()));
            }
        });
        assert!(code.all_ran(400, 40));
    }
}
