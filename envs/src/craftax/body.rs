//! The player's body: sleep, hunger, thirst, tiredness and health.

use super::{Player, action};
use podracer_dsl::prelude::*;

impl Player {
    /// The player after a step of sleep and needs, and whether it wakes up by itself.
    #[track_caller]
    pub(super) fn live(self, action: Tensor) -> (Player, Tensor) {
        let asleep = self.asleep | (action.eq(action::SLEEP) & self.energy.lt(9));
        let wakes = asleep & self.energy.ge(9);
        let asleep = asleep & !wakes;

        let needs = select(asleep, 0.5, 1.0);
        let spend = |need: Tensor, most: f64, store: Tensor| {
            let need = need + needs;
            let over = need.gt(most);
            (select(over, 0.0, need), select(over, (store - 1).maximum(0), store))
        };
        let (hunger, food) = spend(self.hunger, 25.0, self.food);
        let (thirst, drink) = spend(self.thirst, 20.0, self.drink);

        let fatigue = select(asleep, (self.fatigue - 1.0).minimum(0.0), self.fatigue + 1.0);
        let (tired, rested) = (fatigue.gt(30.0), fatigue.lt(-10.0));
        let energy = select(tired, (self.energy - 1).maximum(0), self.energy);
        let energy = select(rested, (energy + 1).minimum(9), energy);
        let fatigue = select(tired | rested, 0.0, fatigue);

        let well = food.gt(0) & drink.gt(0) & (energy.gt(0) | asleep);
        let gain = select(well, select(asleep, 2.0, 1.0), select(asleep, -0.5, -1.0));
        let recover = self.recover + gain;
        let (better, worse) = (recover.gt(25.0), recover.lt(-15.0));
        let health = select(better, (self.health + 1).minimum(9), self.health);
        let health = select(worse, health - 1, health);
        let recover = select(better | worse, 0.0, recover);
        let player = Player {
            food,
            drink,
            energy,
            health,
            recover,
            hunger,
            thirst,
            fatigue,
            asleep,
            ..self
        };
        (player, wakes)
    }
}
