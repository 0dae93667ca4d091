//! What frames cost: speed, machines and their prices, as SEED (Espeholt et al. 2020, section 4.4) compares systems.

/// Dollars of an hour of what SEED's experiments ran on, by Table 3 (September 2019).
pub const PRICES: [(&str, f64); 3] = [("cpu", 0.0475), ("p100", 1.46), ("tpu-v3-core", 1.0)];

/// Machines of one kind that are used, all of the time.
#[derive(Clone, Debug, PartialEq)]
pub struct Used {
    /// Name of the kind, such as `cpu`.
    pub name: String,
    /// Number of them.
    pub count: f64,
    /// Dollars of one for an hour.
    pub price: f64,
}

impl Used {
    /// Dollars of all of them for an hour.
    #[must_use]
    pub fn per_hour(&self) -> f64 {
        self.count * self.price
    }
}

/// A training's use of machines, and its speed.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Machines in use.
    pub used: Vec<Used>,
    /// Frames of the environments in a second.
    pub frames_per_second: f64,
}

impl Cost {
    /// Hours that so many frames take.
    #[must_use]
    pub fn hours(&self, frames: f64) -> f64 {
        frames / self.frames_per_second / 3600.0
    }

    /// Dollars that so many frames cost.
    #[must_use]
    pub fn dollars(&self, frames: f64) -> f64 {
        self.hours(frames) * self.used.iter().map(Used::per_hour).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(accelerators: (&str, f64), cpus: f64, frames_per_second: f64) -> f64 {
        let used = [("cpu", cpus), accelerators].map(|(name, count)| {
            let (_, price) = PRICES.into_iter().find(|(known, _)| *known == name).unwrap();
            Used { name: name.to_owned(), count, price }
        });
        Cost { used: used.into(), frames_per_second }.dollars(1e9)
    }

    /// Checks that a table's dollars are what its machines and its speed give: the speed is between half a unit of its last digit below
    /// and above what is printed, and dollars are whole.
    #[track_caller]
    fn check(accelerators: (&str, f64), cpus: f64, (speed, unit): (f64, f64), table: f64) {
        let [most, least] =
            [-0.5, 0.5].map(|half| dollars(accelerators, cpus, speed + half * unit));
        assert!(
            least - 0.5 <= table && table <= most + 0.5,
            "{cpus} CPUs at {speed}: {least} to {most} and {table} in the table"
        );
    }

    const P100: (&str, f64) = ("p100", 1.0);
    /// One core trains, and one infers.
    const TPU: (&str, f64) = ("tpu-v3-core", 2.0);

    #[test]
    fn a_billion_frames_of_deepmind_lab_cost_what_table_4_says() {
        check(P100, 176.0, (30e3, 1e3), 90.0);
        check(P100, 130.0, (16.5e3, 100.0), 128.0);
        check(P100, 100.0, (7.3e3, 100.0), 236.0);
        check(TPU, 48.0, (34e3, 1e3), 35.0);
        check(TPU, 24.0, (16e3, 1e3), 54.0);
    }

    /// SEED's default network has 104 CPUs, two cores and 74,000 frames a second in Table 4, which are 25.88 to 26.23 dollars; the table
    /// has 25, which is 77,000 frames a second. Table 11 has 20.1 + 8.2 = 28.3 dollars for the same run, which is 68,000. No rounding
    /// of the speed gives either: the paper's figures are of different runs, and the arithmetic is not at fault.
    #[test]
    fn one_entry_of_table_4_is_not_of_its_own_speed() {
        let dollars_at = |speed: f64| dollars(TPU, 104.0, speed);
        assert_eq!(
            format!("{:.2} {:.2} {:.2}", dollars_at(74.5e3), dollars_at(74e3), dollars_at(73.5e3)),
            "25.88 26.05 26.23"
        );
        assert_eq!(format!("{:.1}", dollars_at(77.1e3)), "25.0");
        let [actors, learner] = [(0.0, 104.0), (2.0, 0.0)]
            .map(|(cores, cpus)| dollars(("tpu-v3-core", cores), cpus, 68.15e3));
        assert_eq!(format!("{actors:.1} {learner:.1}"), "20.1 8.2");
    }

    /// Table 1 has the same machines and speeds, and more: CPUs and accelerators of the runs whose dollars Table 4 has.
    #[test]
    fn the_machines_of_table_1_give_the_ratios_of_table_4() {
        let impala = dollars(P100, 176.0, 30e3);
        let seed = dollars(TPU, 104.0, 74e3);
        assert!((impala / seed - 3.6).abs() < 0.15, "{}", impala / seed);
        let eight_cores = dollars(("tpu-v3-core", 8.0), 520.0, 330e3);
        assert!((eight_cores - 27.5).abs() < 0.1, "{eight_cores}");
        // Appendix A.5 divides the cost of Atari on 8 cores: 10.8 dollars of actors, 8.5 of the learner.
        let atari = [
            dollars(("tpu-v3-core", 0.0), 213.0, 260e3),
            dollars(("tpu-v3-core", 8.0), 0.0, 260e3),
        ];
        assert!((atari[0] - 10.8).abs() < 0.1 && (atari[1] - 8.5).abs() < 0.1, "{atari:?}");
    }

    #[test]
    fn a_billion_frames_on_one_gpu_cost_what_table_12_says() {
        check(P100, 176.0, (30e3, 1e3), 90.0);
        check(P100, 44.0, (19e3, 1e3), 51.0);
    }

    #[test]
    fn a_billion_frames_of_football_cost_what_table_5_says() {
        let gpus = ("p100", 2.0);
        check(gpus, 400.0, (11e3, 1e3), 553.0);
        check(gpus, 300.0, (7e3, 1e3), 681.0);
        check(gpus, 300.0, (5.3e3, 100.0), 899.0);
        check(TPU, 416.0, (17.5e3, 100.0), 345.0);
        check(TPU, 248.0, (10.5e3, 100.0), 365.0);
        check(TPU, 168.0, (7.5e3, 100.0), 369.0);
    }
}
