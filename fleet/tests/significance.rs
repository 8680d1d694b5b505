//! Regressions that are there are found, and those that are not are not.

mod support;

use datafusion::prelude::SessionContext;
use heapline_fleet::{
    By, Comparing, Comparison, Engine, Pair, Question, Subject, groups, run_groups,
};
use support::Fleet;

const SEEDS: usize = 200;

/// The comparisons of versions 1.0 and 1.1 in as many generated fleets, each tested by itself. Each is
/// a service, so that one statement has them all.
async fn comparisons(fleet: Fleet) -> Vec<Comparison> {
    let (runs, sites) = fleet.tables();
    let context = SessionContext::new();
    context.register_batch("runs", runs).unwrap();
    context.register_batch("sites", sites).unwrap();
    let engine = Engine::with_context(context);
    let by = [By::Version, By::Service, By::Function];
    let subject = Subject::default();
    let question = Question {
        subject: &subject,
        by: &by,
        only: None,
    };
    let runs = run_groups(&engine, &question).await.unwrap();
    let groups = groups(&engine, &question).await.unwrap();
    let comparing = Comparing::new(&by).unwrap();
    (0..fleet.services)
        .map(|service| {
            let pair = Pair {
                stratum: vec![format!("service-{service}")],
                before: "1.0".to_owned(),
                after: "1.1".to_owned(),
            };
            Comparison::new(&comparing, &runs, &groups, &[pair])
        })
        .collect()
}

#[tokio::test]
async fn without_a_difference_there_are_as_many_discoveries_as_promised() {
    let comparisons = comparisons(Fleet {
        services: SEEDS,
        ..Fleet::default()
    })
    .await;
    assert!(comparisons.iter().all(|comparison| comparison.tested == 50));
    let wrong = comparisons
        .iter()
        .filter(|comparison| comparison.significant > 0)
        .count();
    // Any discovery is false: at most 5 % of 200, and three standard deviations.
    assert!(wrong <= 19, "{wrong} of {SEEDS}");
    eprintln!("without a difference: {wrong} of {SEEDS} have a false discovery");
}

#[tokio::test]
async fn a_growth_of_5_percent_is_found() {
    let planted = 3;
    let fleet = Fleet {
        seed: 2,
        services: SEEDS,
        growth: (1.05, planted),
        ..Fleet::default()
    };
    let (mut found, mut wrong, mut share_wrong) = (0, 0, 0.0);
    for comparison in comparisons(fleet).await {
        let mut false_ones = 0;
        for row in comparison.rows.iter().filter(|row| row.is_significant) {
            let function = &row.group.0[1].1;
            let site: usize = function.split('\'').nth(1).unwrap().parse().unwrap();
            if site < planted && row.change > 0.0 {
                found += 1;
            } else {
                false_ones += 1;
            }
        }
        wrong += false_ones;
        share_wrong += f64::from(false_ones) / comparison.significant.max(1) as f64;
    }
    let share_wrong = share_wrong / SEEDS as f64;
    eprintln!(
        "found {found} of {}; {wrong} others, {share_wrong:.3} of the discoveries",
        SEEDS * planted
    );
    // The growth is five standard errors, so that nearly nine of ten are found.
    assert!(found >= SEEDS * planted * 80 / 100, "{found}");
    assert!(share_wrong <= 0.06, "{share_wrong}");
}
