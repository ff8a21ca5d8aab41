//! When to draw next, as a pure value: any number of requests make one frame, frames keep a distance, and a clock on
//! screen asks for one a second.

use std::time::Duration;

/// Two frames are never closer than this: 30 a second are plenty for eyes and kind to slow links.
const MIN_INTERVAL: Duration = Duration::from_millis(33);

/// Decides when the next frame is due. Times are since an arbitrary start.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameScheduler {
    drawn_at: Option<Duration>,
    wanted_at: Option<Duration>,
}

impl FrameScheduler {
    /// Asks for a frame as soon as may be.
    pub(crate) fn request(&mut self, now: Duration) {
        self.request_at(now);
    }

    /// Asks for a frame at a time; an earlier request stands.
    pub(crate) fn request_at(&mut self, at: Duration) {
        self.wanted_at = Some(self.wanted_at.map_or(at, |wanted| wanted.min(at)));
    }

    /// When the next frame is due; `None` while nobody wants one.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        let wanted = self.wanted_at?;
        Some(self.drawn_at.map_or(wanted, |drawn| wanted.max(drawn + MIN_INTERVAL)))
    }

    /// Whether it is time.
    pub(crate) fn is_due(&self, now: Duration) -> bool {
        self.deadline().is_some_and(|deadline| deadline <= now)
    }

    /// A frame was drawn.
    pub(crate) const fn drawn(&mut self, now: Duration) {
        self.drawn_at = Some(now);
        self.wanted_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn idle_means_no_frame() {
        let mut frames = FrameScheduler::default();
        assert_eq!(frames.deadline(), None);
        frames.request(ms(5));
        assert!(frames.is_due(ms(5)));
        frames.drawn(ms(5));
        assert_eq!(frames.deadline(), None);
    }

    #[test]
    fn many_requests_make_one_frame_at_the_earliest_moment() {
        let mut frames = FrameScheduler::default();
        frames.drawn(ms(100));
        frames.request_at(ms(1_000));
        frames.request(ms(101));
        frames.request(ms(102));
        assert_eq!(frames.deadline(), Some(ms(133)));
        assert!(!frames.is_due(ms(132)));
    }

    #[test]
    fn a_request_for_later_waits_for_later() {
        let mut frames = FrameScheduler::default();
        frames.drawn(ms(0));
        frames.request_at(ms(1_000));
        assert_eq!(frames.deadline(), Some(ms(1_000)));
    }
}
