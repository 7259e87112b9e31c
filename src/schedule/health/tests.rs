use rand::SeedableRng;
use rand::rngs::StdRng;

use super::faults::REST_MOST;
use super::*;
use crate::schedule::split::Ejects;

/// An exit on a clock: each attempt takes a second unless said otherwise.
struct Exit {
    health: Health,
    now: Time,
    rng: StdRng,
}

impl Exit {
    fn new(ceiling: u32) -> Exit {
        Exit {
            health: Health::new(ceiling),
            now: Time::from_secs(1),
            rng: StdRng::seed_from_u64(1),
        }
    }

    fn cap(&self) -> u32 {
        self.health.cap(self.now)
    }

    fn state(&self) -> State {
        self.health.state()
    }

    fn odds() -> Odds {
        Odds::new(0.05)
    }

    fn span(&mut self) -> Span {
        let dispatched = self.now;
        self.now = self.now + Duration::from_secs(1);
        Span {
            dispatched,
            now: self.now,
        }
    }

    fn good(&mut self) -> Change {
        let span = self.span();
        self.health.good(Exit::odds(), span)
    }

    fn goods(&mut self, count: usize) -> Vec<Change> {
        (0..count)
            .map(|_| self.good())
            .filter(|&change| change != Change::None)
            .collect()
    }

    fn fault(&mut self) -> Change {
        self.fault_of(Share::WHOLE)
    }

    fn fault_of(&mut self, share: Share) -> Change {
        let span = self.span();
        self.fault_in(share, span, Ejection::Allowed)
    }

    fn fault_in(&mut self, share: Share, span: Span, ejection: Ejection) -> Change {
        let odds = Exit::odds();
        let charge = Charge {
            share,
            odds,
            ejection,
        };
        self.health.fault(charge, span, &mut self.rng)
    }

    /// Fails until it is ejected.
    fn eject(&mut self) {
        while self.fault() != Change::Ejected {
            assert_ne!(self.state(), State::Evicted);
        }
    }

    /// Waits out its rest.
    fn rest(&mut self) -> Change {
        self.now = self.health.usable_at().expect("it is not evicted");
        self.health.wake(self.now)
    }

    fn hold_off(&self) -> Duration {
        self.health.usable_at().expect("it is not evicted") - self.now
    }
}

const QUARTER: Share = Share {
    exit: 0.25,
    origin: 0.75,
    ejects: Ejects::No,
};

#[test]
fn faults_halve_the_cap_and_then_eject() {
    let mut exit = Exit::new(8);
    exit.health.proves(Proven::Answers);
    let changes: Vec<(Change, u32)> = (0..4).map(|_| (exit.fault(), exit.cap())).collect();
    assert_eq!(
        changes,
        [
            (Change::None, 8),
            (Change::Limited, 4),
            (Change::Limited, 2),
            (Change::Ejected, 0)
        ]
    );
    assert_eq!(exit.state(), State::Ejected);
    assert_eq!(exit.health.reason(), Reason::Faults);
}

#[test]
fn a_burst_dispatched_before_the_cut_halves_once() {
    let mut exit = Exit::new(16);
    exit.health.proves(Proven::Answers);
    let span = exit.span();
    let halvings = (0..3)
        .filter(|_| exit.fault_in(Share::WHOLE, span, Ejection::Allowed) == Change::Limited)
        .count();
    assert_eq!((halvings, exit.cap()), (1, 8));
}

#[test]
fn a_cap_of_one_stays_one() {
    let mut exit = Exit::new(1);
    assert_eq!((exit.fault(), exit.fault()), (Change::None, Change::None));
    assert_eq!(exit.cap(), 1);
}

#[test]
fn a_limited_exit_earns_its_cap_back_by_doubling_every_ten_good_answers() {
    let mut exit = Exit::new(8);
    exit.health.proves(Proven::Answers);
    (0..3).for_each(|_| {
        exit.fault();
    });
    assert_eq!((exit.cap(), exit.state()), (2, State::Limited));
    let mut caps = Vec::new();
    while exit.state() == State::Limited {
        if exit.good() != Change::None {
            caps.push(exit.cap());
        }
    }
    assert_eq!(caps, [4, 8]);
    assert_eq!(exit.health.reason(), Reason::None);
}

#[test]
fn each_fault_in_a_row_doubles_the_hold_off_up_to_ten_seconds() {
    let mut exit = Exit::new(4);
    // Spared each time, so that the row is not cut short by an ejection.
    let mut hold_offs = Vec::new();
    for _ in 0..8 {
        let span = exit.span();
        exit.fault_in(Share::WHOLE, span, Ejection::Withheld);
        hold_offs.push(exit.hold_off().as_millis());
        exit.now = exit.now + exit.hold_off();
    }
    assert_eq!(
        hold_offs,
        [500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000]
    );
    exit.good();
    let span = exit.span();
    exit.fault_in(Share::WHOLE, span, Ejection::Withheld);
    assert_eq!(exit.hold_off(), Duration::from_millis(500));
}

#[test]
fn of_a_fault_that_is_a_quarter_its_own_it_rests_a_quarter_of_the_time_and_a_second_at_most() {
    let mut exit = Exit::new(4);
    let mut hold_offs = Vec::new();
    for _ in 0..5 {
        exit.fault_of(QUARTER);
        hold_offs.push(exit.hold_off().as_millis());
        exit.now = exit.now + exit.hold_off();
    }
    assert_eq!(hold_offs, [125, 250, 500, 1000, 1000]);
}

#[test]
fn an_exit_that_fails_twice_before_it_ever_worked_gets_one_attempt_at_a_time() {
    let mut exit = Exit::new(4);
    assert_eq!(exit.cap(), 4);
    let fails_twice = |exit: &mut Exit| {
        exit.fault_of(QUARTER);
        exit.now = exit.now + exit.hold_off();
        exit.fault_of(QUARTER);
    };
    fails_twice(&mut exit);
    assert_eq!((exit.cap(), exit.state()), (1, State::Healthy));
    exit.good();
    assert_eq!(exit.cap(), 4);
    fails_twice(&mut exit);
    assert_eq!(exit.cap(), 4, "it has worked");
}

#[test]
fn a_burst_counts_once_for_the_hold_off() {
    let mut exit = Exit::new(16);
    let span = exit.span();
    for _ in 0..3 {
        exit.fault_in(Share::WHOLE, span, Ejection::Allowed);
    }
    assert_eq!(exit.hold_off(), Duration::from_millis(500));
}

#[test]
fn a_silent_origin_behind_the_only_exit_limits_it_but_never_puts_it_out_of_use() {
    let mut exit = Exit::new(4);
    for _ in 0..1_000 {
        assert_ne!(exit.fault_of(QUARTER), Change::Ejected);
        assert!(exit.hold_off() <= Duration::from_secs(1));
    }
    assert!(exit.cap() >= 1);
}

#[test]
fn a_fault_that_is_known_to_be_the_origins_holds_nobody_off() {
    let mut exit = Exit::new(4);
    let share = Share {
        exit: 0.05,
        origin: 0.95,
        ejects: Ejects::Yes,
    };
    exit.fault_of(share);
    assert_eq!(exit.hold_off(), Duration::ZERO);
}

#[test]
fn rests_double_and_the_sixth_ejection_is_final() {
    let mut exit = Exit::new(4);
    exit.eject();
    for secs in [5, 10, 20, 40, 80] {
        let rest = exit.hold_off();
        let longest = Duration::from_secs(secs);
        assert!(longest / 2 <= rest && rest < longest, "{rest:?} of {secs}");
        assert_eq!(exit.cap(), 0);
        assert_eq!(exit.rest(), Change::Probation);
        assert_eq!(exit.cap(), 1);
        let change = exit.fault();
        assert_eq!(change == Change::Evicted, secs == 80);
    }
    assert_eq!(exit.state(), State::Evicted);
    assert_eq!(exit.health.reason(), Reason::NeverRecovered);
    assert_eq!(exit.health.usable_at(), None);
    assert_eq!(exit.health.changes_at(exit.now), None);
}

#[test]
fn three_good_probes_end_probation_and_the_cap_grows_from_one() {
    let mut exit = Exit::new(4);
    exit.eject();
    exit.rest();
    assert_eq!(exit.goods(2), []);
    assert_eq!(exit.state(), State::Probation);
    assert_eq!(exit.good(), Change::Recovered);
    assert_eq!((exit.state(), exit.cap()), (State::Healthy, 1));
    assert_eq!(exit.goods(20), [Change::Grown, Change::Recovered]);
    assert_eq!(exit.cap(), 4);
}

#[test]
fn a_fault_that_is_rather_the_origins_neither_ends_nor_fails_probation() {
    let mut exit = Exit::new(4);
    exit.eject();
    exit.rest();
    assert_eq!(exit.fault_of(QUARTER), Change::None);
    assert_eq!(exit.state(), State::Probation);
    assert_eq!(exit.goods(3), [Change::Recovered]);
}

#[test]
fn answers_to_attempts_from_before_the_ejection_decide_nothing() {
    let mut exit = Exit::new(4);
    let old = exit.span();
    exit.eject();
    let late = Span {
        dispatched: old.dispatched,
        now: exit.now,
    };
    let rest = exit.hold_off();
    assert_eq!(
        exit.fault_in(Share::WHOLE, late, Ejection::Allowed),
        Change::None
    );
    assert_eq!(exit.hold_off(), rest);
    exit.rest();
    let late = Span {
        dispatched: old.dispatched,
        now: exit.now,
    };
    for _ in 0..3 {
        assert_eq!(exit.health.good(Exit::odds(), late), Change::None);
        assert_eq!(
            exit.fault_in(Share::WHOLE, late, Ejection::Allowed),
            Change::None
        );
    }
    assert_eq!(exit.state(), State::Probation);
    assert!(!exit.health.is_probe(late));
}

#[test]
fn an_exit_that_works_for_long_is_forgiven_its_ejections() {
    let mut exit = Exit::new(4);
    for _ in 0..20 {
        exit.eject();
        exit.rest();
        exit.goods(3 + 20 + 50);
        assert_eq!((exit.state(), exit.cap()), (State::Healthy, 4));
    }
}

#[test]
fn an_exit_that_flaps_is_let_in_again_but_not_for_ever() {
    let mut exit = Exit::new(4);
    let mut recoveries = 0;
    while exit.state() != State::Evicted {
        while !matches!(exit.fault(), Change::Ejected | Change::Evicted) {}
        if exit.state() == State::Ejected {
            exit.rest();
            recoveries += exit
                .goods(5)
                .iter()
                .filter(|&&change| change == Change::Recovered)
                .count();
        }
    }
    assert_eq!(recoveries, 5);
}

#[test]
fn a_spared_exit_keeps_a_cap_of_one_and_asks_again_at_each_fault() {
    let mut exit = Exit::new(8);
    let mut changes = Vec::new();
    for _ in 0..6 {
        let span = exit.span();
        changes.push(exit.fault_in(Share::WHOLE, span, Ejection::Withheld));
    }
    assert_eq!(changes[3..], [Change::Spared; 3]);
    assert_eq!((exit.state(), exit.cap()), (State::Limited, 1));
    assert_eq!(exit.fault(), Change::Ejected, "there is room by now");
}

#[test]
fn refusals_of_one_burst_teach_the_exact_ceiling_and_count_once() {
    let mut exit = Exit::new(10);
    let burst = exit.span();
    let changes: Vec<Change> = (5..=10)
        .rev()
        .map(|in_flight| exit.health.congested(in_flight, burst))
        .collect();
    assert_eq!(exit.cap(), 4);
    assert_eq!(changes, [Change::Limited; 6]);
    assert_eq!(exit.state(), State::Limited);
    assert_eq!(exit.health.reason(), Reason::Refusals(4));
    let end = burst.now + Duration::from_secs(60);
    assert_eq!(exit.health.changes_at(exit.now), Some(end));
    exit.now = end;
    assert_eq!(exit.health.wake(end), Change::Recovered);
    assert_eq!((exit.state(), exit.cap()), (State::Healthy, 10));
}

#[test]
fn refusals_are_no_faults() {
    let mut exit = Exit::new(10);
    for _ in 0..100 {
        let span = exit.span();
        exit.health.congested(2, span);
        assert_eq!(exit.hold_off(), Duration::ZERO);
    }
    assert_eq!(exit.cap(), 1);
    assert_eq!(exit.state(), State::Limited);
}

#[test]
fn far_more_429s_than_others_halve_the_cap() {
    let mut exit = Exit::new(8);
    let mut pool = PoolShare::default();
    for n in 0..1_000 {
        let throttled = if n % 50 == 0 {
            Throttled::Yes
        } else {
            Throttled::No
        };
        pool.record(throttled);
    }
    let mut changes = Vec::new();
    for n in 0..50 {
        let span = exit.span();
        let throttled = if n % 5 == 0 {
            Throttled::Yes
        } else {
            Throttled::No
        };
        changes.push(exit.health.answered(throttled, &pool, span));
    }
    assert_eq!(changes.last(), Some(&Change::Limited));
    assert_eq!((exit.cap(), exit.health.reason()), (4, Reason::Throttled));
}

#[test]
fn a_pardon_takes_charge_and_hold_off_back() {
    let mut exit = Exit::new(8);
    exit.fault();
    assert!(exit.hold_off() > Duration::ZERO);
    exit.health.pardon(Share::WHOLE, Exit::odds());
    assert!(exit.health.usable_at() <= Some(exit.now));
    assert_eq!(exit.fault(), Change::None, "as if it were the first");
}

#[test]
fn a_pardon_does_not_shorten_the_rest_of_an_ejected_exit() {
    let mut exit = Exit::new(8);
    exit.eject();
    let rest = exit.hold_off();
    (0..9).for_each(|_| exit.health.pardon(Share::WHOLE, Exit::odds()));
    assert_eq!(exit.hold_off(), rest);
}

#[test]
fn eviction_is_final_and_told_once() {
    let mut exit = Exit::new(8);
    assert_eq!(
        exit.health.evict(Reason::CredentialsRefused),
        Change::Evicted
    );
    assert_eq!(exit.health.evict(Reason::Intercepts), Change::None);
    assert_eq!((exit.good(), exit.fault()), (Change::None, Change::None));
    assert_eq!(exit.health.wake(Time::NEVER), Change::None);
    assert_eq!(exit.health.reason(), Reason::CredentialsRefused);
    assert_eq!(exit.cap(), 0);
}

#[test]
fn three_origins_without_a_good_answer_speak_against_the_exit() {
    let mut health = Health::new(4);
    for origin in [1, 1, 2] {
        health.unclear_at(origin);
    }
    assert!(!health.fails_everywhere());
    health.unclear_at(3);
    assert!(health.fails_everywhere());
    let now = Time::from_secs(1);
    let span = Span {
        dispatched: now,
        now,
    };
    health.good(Exit::odds(), span);
    assert!(!health.fails_everywhere());
}

#[test]
fn proofs_only_add_up() {
    let mut health = Health::new(4);
    health.proves(Proven::Tls);
    health.proves(Proven::Answers);
    assert_eq!(health.proven(), Proven::Tls);
}

#[test]
fn an_exit_takes_little_memory() {
    assert!(size_of::<Health>() <= 120, "{}", size_of::<Health>());
}

mod any_sequence {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Good,
        Fault(f32, Ejection),
        Congested(u32),
        Throttled,
        Pardon,
        Wake,
        Later(u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            Just(Event::Good),
            (0.0..=1.0_f32).prop_map(|share| Event::Fault(share, Ejection::Allowed)),
            (0.0..=1.0_f32).prop_map(|share| Event::Fault(share, Ejection::Withheld)),
            (0..20_u32).prop_map(Event::Congested),
            Just(Event::Throttled),
            Just(Event::Pardon),
            Just(Event::Wake),
            (0..100_000_u64).prop_map(Event::Later),
        ]
    }

    proptest! {
        #[test]
        fn the_cap_stays_within_the_ceiling_and_a_living_exit_always_comes_back(
            ceiling in 1..20_u32,
            events in prop::collection::vec((event(), 0..5_000_u64), 1..200),
        ) {
            let mut exit = Exit::new(ceiling);
            let odds = Exit::odds();
            for (event, age_ms) in events {
                let span = Span {
                    dispatched: exit.now.back(Duration::from_millis(age_ms)),
                    now: exit.now,
                };
                match event {
                    Event::Good => { exit.health.good(odds, span); }
                    Event::Fault(share, ejection) => {
                        let share = Share { exit: share, origin: 1.0 - share, ejects: Ejects::Yes };
                        exit.fault_in(share, span, ejection);
                    }
                    Event::Congested(in_flight) => { exit.health.congested(in_flight, span); }
                    Event::Throttled => {
                        exit.health.answered(Throttled::Yes, &PoolShare::default(), span);
                    }
                    Event::Pardon => exit.health.pardon(Share::WHOLE, odds),
                    Event::Wake => { exit.health.wake(exit.now); }
                    Event::Later(ms) => exit.now = exit.now + Duration::from_millis(ms),
                }
                let (cap, state) = (exit.cap(), exit.state());
                prop_assert!(cap <= ceiling);
                match state {
                    State::Healthy | State::Limited => prop_assert!(cap >= 1),
                    State::Probation => prop_assert_eq!(cap, 1),
                    State::Ejected | State::Evicted => prop_assert_eq!(cap, 0),
                }
                // Every wait is bounded, and an alarm is there to end it.
                let usable_at = exit.health.usable_at();
                prop_assert_eq!(usable_at.is_none(), state == State::Evicted);
                if let Some(at) = usable_at && at > exit.now {
                    prop_assert!(at - exit.now <= REST_MOST);
                    prop_assert!(exit.health.changes_at(exit.now).is_some_and(|next| next <= at));
                }
            }
        }
    }
}
