//! The player's actions: hit, gather, eat and drink, make tools, and place blocks.

use super::map::{Map, Write, block, is_inside, is_solid};
use super::turn::{Scene, either, first, of_kind, on, only, same};
use super::{
    ACHIEVEMENTS, COWS, Creatures, ITEMS, Place, Plants, SKELETONS, VIEW, ZOMBIES, achievement,
    action, item, way,
};
use podracer_dsl::prelude::*;
use std::ops::Range;

/// A thing that an action makes.
struct Made {
    action: i32,
    /// Items that it costs, with the number of each.
    costs: &'static [(usize, i32)],
    makes: Product,
    achievement: usize,
}

/// A tool for the player, or a block in front of it.
enum Product {
    Tool(usize),
    Block(i32),
}

const MADE: [Made; 10] = {
    use Product::{Block, Tool};
    use achievement::*;
    const WOOD: &[(usize, i32)] = &[(item::WOOD, 1)];
    const STONE: &[(usize, i32)] = &[(item::WOOD, 1), (item::STONE, 1)];
    const IRON: &[(usize, i32)] =
        &[(item::WOOD, 1), (item::STONE, 1), (item::COAL, 1), (item::IRON, 1)];
    const fn made(
        action: i32,
        costs: &'static [(usize, i32)],
        makes: Product,
        achievement: usize,
    ) -> Made {
        Made { action, costs, makes, achievement }
    }
    [
        made(action::PLACE_STONE, &[(item::STONE, 1)], Block(block::STONE), PLACE_STONE),
        made(action::PLACE_TABLE, &[(item::WOOD, 2)], Block(block::TABLE), PLACE_TABLE),
        made(action::PLACE_FURNACE, &[(item::STONE, 1)], Block(block::FURNACE), PLACE_FURNACE),
        made(action::PLACE_PLANT, &[(item::SAPLING, 1)], Block(block::PLANT), PLACE_PLANT),
        made(action::MAKE_WOOD_PICKAXE, WOOD, Tool(item::WOOD_PICKAXE), MAKE_WOOD_PICKAXE),
        made(action::MAKE_STONE_PICKAXE, STONE, Tool(item::STONE_PICKAXE), MAKE_STONE_PICKAXE),
        made(action::MAKE_IRON_PICKAXE, IRON, Tool(item::IRON_PICKAXE), MAKE_IRON_PICKAXE),
        made(action::MAKE_WOOD_SWORD, WOOD, Tool(item::WOOD_SWORD), MAKE_WOOD_SWORD),
        made(action::MAKE_STONE_SWORD, STONE, Tool(item::STONE_SWORD), MAKE_STONE_SWORD),
        made(action::MAKE_IRON_SWORD, IRON, Tool(item::IRON_SWORD), MAKE_IRON_SWORD),
    ]
};

/// A block that gives something to the player who hits it.
struct Gathered {
    block: i32,
    /// The required tool.
    tool: Option<usize>,
    item: Option<usize>,
    /// The block that remains.
    left: i32,
    achievement: usize,
}

const GATHERED: [Gathered; 8] = {
    use achievement::*;
    const fn gathered(
        block: i32,
        tool: Option<usize>,
        item: Option<usize>,
        left: i32,
        achievement: usize,
    ) -> Gathered {
        Gathered { block, tool, item, left, achievement }
    }
    let (wooden, stone, iron) =
        (Some(item::WOOD_PICKAXE), Some(item::STONE_PICKAXE), Some(item::IRON_PICKAXE));
    [
        gathered(block::TREE, None, Some(item::WOOD), block::GRASS, COLLECT_WOOD),
        gathered(block::STONE, wooden, Some(item::STONE), block::PATH, COLLECT_STONE),
        gathered(block::COAL, wooden, Some(item::COAL), block::PATH, COLLECT_COAL),
        gathered(block::IRON, stone, Some(item::IRON), block::PATH, COLLECT_IRON),
        gathered(block::DIAMOND, iron, Some(item::DIAMOND), block::PATH, COLLECT_DIAMOND),
        gathered(block::GRASS, None, Some(item::SAPLING), block::GRASS, COLLECT_SAPLING),
        gathered(block::WATER, None, None, block::WATER, COLLECT_DRINK),
        // A plant remains, because its age makes it ripe.
        gathered(block::RIPE_PLANT, None, None, block::PLANT, EAT_PLANT),
    ]
};

/// Damage of a hit with a sword of wood, stone and iron; without a sword it is 1.
const SWORDS: [i32; 3] = [2, 3, 5];

/// Probability of a sapling when grass is hit.
const SAPLING: f64 = 0.1;

/// A row of numbers, selected by an action or a block. The rows are sparse, given as row, position
/// and number of each nonzero. `i32[width]`
#[track_caller]
fn row(
    of: Tensor,
    [rows, width]: [usize; 2],
    some: impl Iterator<Item = (i32, usize, i32)>,
) -> Tensor {
    let mut numbers = vec![0; rows * width];
    some.for_each(|(row, place, number)| numbers[row as usize * width + place] = number);
    constant(numbers).reshape([rows, width]).take(of, 0)
}

/// Parts of the state that the player changes.
pub(super) struct Done {
    pub(super) scene: Scene,
    pub(super) map: Map,
    /// Number of each item. `i32[ITEMS]`
    pub(super) inventory: Tensor,
    pub(super) plants: Plants,
    /// Achievements of the episode. `bool[ACHIEVEMENTS]`
    pub(super) achieved: Tensor,
}

impl Done {
    /// The player acts. `seen` has the blocks around it, `sapling` is a uniform draw, `f32[]`.
    #[track_caller]
    pub(super) fn act(mut self, action: Tensor, seen: Tensor, sapling: Tensor) -> Done {
        let player = self.scene.player;
        let moves = action.ge(action::LEFT) & action.le(action::DOWN);
        // No action both moves and uses the hands, so one cell is enough.
        let facing = select(moves, action, player.facing);
        let here = player.place();
        let target = on(here, way(facing));
        let there = self.map.read(target);
        let taken = self.scene.is_taken(target);
        let goes = moves & (self.scene.is_open(target, there) | there.eq(block::LAVA));
        let (row, column) = either(goes, target, here);

        let made = self.make(action, seen, (target, there), taken);
        let gathered = self.hit(action.eq(action::DO), (target, there), sapling);
        self.map.own =
            Some(Write::new(made.0 | gathered.0, target, select(made.0, made.1, gathered.1)));
        self.scene.player.row = row;
        self.scene.player.column = column;
        self.scene.player.facing = facing;
        self
    }

    /// Makes a tool or places a block if the player has the items. Returns whether a block is
    /// placed, and which.
    #[track_caller]
    fn make(
        &mut self,
        action: Tensor,
        seen: Tensor,
        (target, there): (Place, Tensor),
        taken: Tensor,
    ) -> (Tensor, Tensor) {
        let costs = MADE
            .iter()
            .flat_map(|made| made.costs.iter().map(|&(item, number)| (made.action, item, number)));
        let gives = MADE.iter().filter_map(|made| match made.makes {
            Product::Tool(item) => Some((made.action, item, 1)),
            Product::Block(_) => None,
        });
        let achieved = MADE.iter().map(|made| (made.action, made.achievement, 1));
        let costs = row(action, [action::COUNT, ITEMS], costs);
        let gives = row(action, [action::COUNT, ITEMS], gives);
        let achieved = row(action, [action::COUNT, ACHIEVEMENTS], achieved);

        let (rows, columns) = (VIEW.0 / 2, VIEW.1 / 2);
        let near = seen.slice_axis(0, rows - 1..rows + 2).slice_axis(1, columns - 1..columns + 2);
        let near = |block: i32| near.eq(scalar(block).astype(U8)).any();
        let iron = action.eq(action::MAKE_IRON_PICKAXE) | action.eq(action::MAKE_IRON_SWORD);
        let tool = near(block::TABLE) & (near(block::FURNACE) | !iron);

        let places = action.ge(action::PLACE_STONE) & action.le(action::PLACE_PLANT);
        let on_water = action.eq(action::PLACE_STONE) & there.eq(block::WATER);
        let fits = select(
            action.eq(action::PLACE_PLANT),
            there.eq(block::GRASS),
            !is_solid(there) | on_water,
        );
        let room = is_inside(target) & !taken & fits;
        let makes = action.ge(action::PLACE_STONE)
            & select(places, room, tool)
            & self.inventory.ge(costs).all();
        self.inventory += select(makes, gives - costs, 0);
        self.achieve(achieved.gt(0), makes);
        self.sow(makes & action.eq(action::PLACE_PLANT), target);

        let block = MADE.iter().fold(scalar(0), |placed, made| match made.makes {
            Product::Block(block) => select(action.eq(made.action), block, placed),
            Product::Tool(_) => placed,
        });
        (makes & places, block)
    }

    /// Records achievements, `bool[ACHIEVEMENTS]`, if `when` is true.
    #[track_caller]
    fn achieve(&mut self, which: Tensor, when: Tensor) {
        self.achieved = self.achieved | (which & when);
    }

    /// The player hits a creature in front of it, or otherwise the block. Returns whether the block
    /// is gathered, and the block that remains.
    #[track_caller]
    fn hit(
        &mut self,
        hits: Tensor,
        (target, there): (Place, Tensor),
        sapling: Tensor,
    ) -> (Tensor, Tensor) {
        let swords = self.inventory.slice(item::WOOD_SWORD..);
        let damage = (swords * constant(SWORDS)).max().maximum(1);
        let mut struck = constant(false);
        let mut dead = Vec::new();
        for (kind, achievement) in [
            (ZOMBIES, achievement::DEFEAT_ZOMBIE),
            (COWS, achievement::EAT_COW),
            (SKELETONS, achievement::DEFEAT_SKELETON),
        ] {
            let (here, dies) = self.strike(kind, hits, target, damage);
            self.achieve(only(achievement), dies);
            struck = struck | here;
            dead.push(dies);
        }
        let [zombie, cow, skeleton] = dead[..] else { unreachable!("three kinds") };
        self.scene.creatures = self.scene.creatures.forget(zombie | cow | skeleton, target);

        let free = hits & is_inside(target) & !struck;
        let there = select(self.plants.is_ripe(target), block::RIPE_PLANT, there);
        let all = || GATHERED.iter();
        let needs = all().filter_map(|one| Some((one.block, one.tool?, 1)));
        let gives = all().filter_map(|one| Some((one.block, one.item?, 1)));
        let left = all().map(|one| (one.block, 0, one.left));
        let achieved = all().map(|one| (one.block, one.achievement, 1));
        let needs = row(there, [block::COUNT, ITEMS], needs);
        let gives = row(there, [block::COUNT, ITEMS], gives);
        let left = row(there, [block::COUNT, 1], left).index(0);
        let achieved = row(there, [block::COUNT, ACHIEVEMENTS], achieved);
        let lucky = there.ne(block::GRASS) | sapling.lt(SAPLING);
        let gathers = free & lucky & left.gt(0) & self.inventory.ge(needs).all();
        self.inventory += select(gathers, gives, 0);
        self.achieve(achieved.gt(0), gathers);

        let (drinks, eats) =
            (gathers & there.eq(block::WATER), gathers & there.eq(block::RIPE_PLANT));
        let eaten = first(same(self.plants.places(), target));
        self.plants.ages = select(eaten & eats, 0, self.plants.ages);
        let player = &mut self.scene.player;
        let fed = |food: Tensor, gain: i32| (food + gain).minimum(9);
        player.food = select(cow, fed(player.food, 6), player.food);
        player.food = select(eats, fed(player.food, 4), player.food);
        player.hunger = select(cow | eats, 0.0, player.hunger);
        player.drink = select(drinks, fed(player.drink, 1), player.drink);
        player.thirst = select(drinks, 0.0, player.thirst);
        (gathers, left)
    }

    /// Hits a creature of a kind at a position. Returns whether there was a creature, and whether
    /// it died.
    #[track_caller]
    fn strike(
        &mut self,
        kind: Range<usize>,
        hits: Tensor,
        target: Place,
        damage: Tensor,
    ) -> (Tensor, Tensor) {
        let creatures = self.scene.creatures;
        let kind = of_kind(kind);
        let here = kind & creatures.alive & same(creatures.places(), target) & hits;
        let one = first(here);
        let healths = creatures.healths - select(one, damage, 0);
        // As in the package, any hit revives the creatures of the kind that went away with health
        // left.
        let alive = select(kind & hits, healths.gt(0), creatures.alive);
        self.scene.creatures = Creatures { healths, alive, ..creatures };
        (here.any(), (one & healths.le(0)).any())
    }

    /// A plant begins to grow, if there are fewer than ten.
    #[track_caller]
    fn sow(&mut self, sown: Tensor, (row, column): Place) {
        let Plants { rows, columns, ages, growing } = self.plants;
        let here = first(!growing) & sown;
        self.plants = Plants {
            rows: select(here, row, rows),
            columns: select(here, column, columns),
            ages: select(here, 0, ages),
            growing: growing | here,
        };
    }
}
