//! Profiles: two timestamps around each command that is measured, and reading them when a submission has finished.
//!
//! A command begins when the device's command processor comes to it, behind the barrier in front of it (`TOP_OF_PIPE`), and
//! ends when its own stage and all before it are done. Barriers stay as they are. Writing a timestamp at the end of a stage
//! orders nothing by the specification, yet drivers may wait for the stage: commands that no barrier separates may overlap
//! less while they are measured. llvmpipe and SwiftShader finish all earlier work first.

use std::{ops::Range, sync::Arc};

use ash::vk;
use halite_hal::{Deadline, DeviceProfile, ProfileLog, RawTime, Result, TimedCommand, status};
use parking_lot::Mutex;

use crate::context::DeviceContext;

/// The timestamps of one recording.
pub(crate) struct Timer {
    ctx: Arc<DeviceContext>,
    pool: vk::QueryPool,
    /// Steps of each command, in order; query 2n is the beginning of command n, 2n + 1 its end.
    commands: Vec<(Range<usize>, Arc<TimedCommand>)>,
}

impl Timer {
    /// For commands that consist of these steps of a program, in order.
    pub fn new(ctx: &Arc<DeviceContext>, commands: Vec<(Range<usize>, Arc<TimedCommand>)>) -> Result<Self> {
        let count = u32::try_from(2 * commands.len()).map_err(|_| {
            status!(ResourceExhausted, "{} commands are too many for one query pool", commands.len())
        })?;
        let info = vk::QueryPoolCreateInfo::default().query_type(vk::QueryType::TIMESTAMP).query_count(count);
        // SAFETY: the device is alive; the timer destroys the pool.
        let pool = unsafe { ctx.device.create_query_pool(&info, None) }
            .map_err(|e| ctx.error("vkCreateQueryPool", e, "timestamps of a profile"))?;
        ctx.set_name(pool, "profile");
        Ok(Timer { ctx: ctx.clone(), pool, commands })
    }

    /// Records that no timestamp is there yet.
    pub fn record_reset(&self, target: vk::CommandBuffer) {
        // SAFETY: the command buffer is recording and only the caller has it; queues of this driver compute, so they may
        // reset queries; the pool lives as long as the recording.
        unsafe { self.ctx.device.cmd_reset_query_pool(target, self.pool, 0, 2 * self.commands.len() as u32) };
    }

    fn place(&self, matches: impl Fn(&Range<usize>) -> std::cmp::Ordering) -> Option<u32> {
        let found = self.commands.binary_search_by(|(steps, _)| matches(steps));
        found.ok().map(|place| 2 * place as u32)
    }

    /// Whether a step is the first of a command.
    pub fn begins(&self, step: usize) -> bool {
        self.place(|steps| steps.start.cmp(&step)).is_some()
    }

    /// Records the beginning of the command that begins with this step.
    pub fn record_start(&self, target: vk::CommandBuffer, step: usize) {
        if let Some(query) = self.place(|steps| steps.start.cmp(&step)) {
            self.record(target, query, vk::PipelineStageFlags::TOP_OF_PIPE);
        }
    }

    /// Records the end of the command that ends with this step, which works in `stages`; nothing for other steps.
    pub fn record_end(&self, target: vk::CommandBuffer, step: usize, stages: vk::PipelineStageFlags) {
        if let Some(query) = self.place(|steps| steps.end.cmp(&(step + 1))) {
            let transfer = vk::PipelineStageFlags::TRANSFER;
            let last =
                if stages.contains(transfer) { transfer } else { vk::PipelineStageFlags::COMPUTE_SHADER };
            self.record(target, query + 1, last);
        }
    }

    fn record(&self, target: vk::CommandBuffer, query: u32, stage: vk::PipelineStageFlags) {
        // SAFETY: the command buffer is recording and only the caller has it; the query was reset before in it, and the
        // queue's family has timestamps, or no profile would have begun.
        unsafe { self.ctx.device.cmd_write_timestamp(target, stage, self.pool, query) };
    }

    /// What was written, as two ticks for each command. The recording has finished.
    fn read(&self) -> Result<Vec<u64>> {
        let mut ticks = vec![0u64; 2 * self.commands.len()];
        // SAFETY: the pool is alive, and the array has room for all its queries.
        unsafe {
            self.ctx.device.get_query_pool_results(self.pool, 0, &mut ticks, vk::QueryResultFlags::TYPE_64)
        }
        .map_err(|e| self.ctx.error("vkGetQueryPoolResults", e, "timestamps of a profile"))?;
        Ok(ticks)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if self.ctx.is_forked() {
            return;
        }
        // SAFETY: whoever drops the last handle of a timer knows that its recording was never submitted or has finished.
        unsafe { self.ctx.device.destroy_query_pool(self.pool, None) };
    }
}

/// A run of a recording that is measured, from its submission on.
pub(crate) struct Measured {
    profiler: Arc<Profiler>,
    timer: Arc<Timer>,
    run: u64,
    ended: bool,
}

impl Measured {
    /// Adds what was measured to the profile. The run has finished.
    pub fn read(mut self, queue: u32) {
        self.ended = true;
        let (log, commands) = (&self.profiler.log, &self.timer.commands);
        let ticks = match self.timer.read() {
            Ok(ticks) => ticks,
            Err(e) => {
                log::warn!("timestamps of a profile could not be read: {e}");
                return log.end_run([], commands.len() as u64);
            }
        };
        let mut clock = self.profiler.clock.lock();
        let times = commands.iter().zip(ticks.as_chunks::<2>().0).map(|((_, command), [start, end])| {
            let (start, end) = (clock.unwrap(*start), clock.unwrap(*end));
            RawTime { command: command.clone(), queue, run: self.run, start, end }
        });
        let times: Vec<RawTime> = times.collect();
        drop(clock);
        log.end_run(times, 0);
    }
}

impl Drop for Measured {
    /// A run that was never submitted, or that was lost with its device.
    fn drop(&mut self) {
        if !self.ended {
            self.profiler.log.end_run([], self.timer.commands.len() as u64);
        }
    }
}

/// The profile of a device.
pub(crate) struct Profiler {
    log: ProfileLog,
    clock: Mutex<Clock>,
    /// Nanoseconds in a tick.
    period: f64,
    /// Why the device cannot be profiled.
    unfit: Option<String>,
}

impl Profiler {
    /// For an open device. Its queues are of one family.
    pub fn new(ctx: &DeviceContext) -> Self {
        let families = &ctx.facts.queue_families;
        let family = ctx.queues.first().map_or(0, |queue| queue.family);
        let bits = families.get(family as usize).map_or(0, |family| family.timestamp_valid_bits);
        let period = f64::from(ctx.facts.limits.timestamp_period);
        let unfit = (bits == 0 || period.is_nan() || period <= 0.0).then(|| {
            format!(
                "device '{}' cannot be profiled: queue family {family} has no timestamps (timestampValidBits is {bits}, \
                 timestampPeriod {period})",
                ctx.info.uri()
            )
        });
        Profiler { log: ProfileLog::default(), clock: Mutex::new(Clock { bits, last: None }), period, unfit }
    }

    /// Whether commands should be measured.
    pub fn is_on(&self) -> bool {
        self.log.is_on()
    }

    /// Begins a profile; UNIMPLEMENTED where the device has no timestamps.
    pub fn start(&self) -> Result<()> {
        match &self.unfit {
            Some(why) => Err(status!(Unimplemented, "{why}")),
            None => self.log.start(),
        }
    }

    /// Ends a profile.
    pub fn stop(&self, deadline: Deadline) -> Result<DeviceProfile> {
        self.log.stop(self.period, deadline)
    }

    /// A run of what a timer measures, which is about to be submitted.
    pub fn begin(self: &Arc<Self>, timer: Arc<Timer>) -> Measured {
        let run = self.log.begin_run();
        Measured { profiler: self.clone(), timer, run, ended: false }
    }
}

/// The device's clock without its wraps: each value is taken for the one that is nearest to the last.
#[derive(Debug)]
struct Clock {
    /// Bits of a tick that count.
    bits: u32,
    /// The last tick, as it was read and without wraps.
    last: Option<(u64, i64)>,
}

impl Clock {
    fn unwrap(&mut self, tick: u64) -> i64 {
        let unused = 64 - self.bits.clamp(1, 64);
        let time = match self.last {
            None => 0,
            Some((last, time)) => {
                // Shifted up, the difference has the sign of its highest bit that counts.
                let difference = (tick.wrapping_sub(last) << unused).cast_signed() >> unused;
                time.saturating_add(difference)
            }
        };
        self.last = Some((tick, time));
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_wrap_at_the_bits_that_count() {
        let mut clock = Clock { bits: 36, last: None };
        let top = 1u64 << 36;
        let ticks = [top - 10, top - 4, 2, 1, top - 1, 40];
        assert_eq!(ticks.map(|tick| clock.unwrap(tick)), [0, 6, 12, 11, 9, 50]);
        // Bits beyond those that count mean nothing.
        assert_eq!(clock.unwrap(41 | 1 << 50), 51);
        let mut whole = Clock { bits: 64, last: None };
        assert_eq!([u64::MAX, 4].map(|tick| whole.unwrap(tick)), [0, 5]);
    }
}
