// Derives requests about a heap snapshot from the state. Report files have the answers to the usual ones:
// crates/server/src/report/snapshots.rs is the other side of this.

import { type Question, question } from "../api/question";
import type { State } from "../state/state";

export const dominatorsQuestion = question("dominators", { min: "0.1%" });

export const findingsQuestion = question("findings", { rows: 20 });

export const diffQuestion = question("diff", { rows: 200 });

/** A path has no grouping. */
export function retainedQuestion({ at, retainedBy }: Pick<State, "at" | "retainedBy">): Question {
  return question("retained", at === "" ? { by: retainedBy, rows: 1000 } : { at, rows: 1000 });
}

export function whyQuestion(state: State): Question {
  return question("why", {
    kind: state.kind,
    address: state.address,
    "held-by": state.heldBy,
    through: state.through,
    site: state.site,
    where: state.where.trim(),
    depth: state.depth,
    rows: 100,
  });
}

/** The question of the view on the screen: "copy as command" is about it. */
export function heapViewQuestion(state: State): Question {
  switch (state.heap) {
    case "icicle":
    case "tree":
      return dominatorsQuestion;
    case "retained":
      return retainedQuestion(state);
    case "why":
      return whyQuestion(state);
    case "compare":
      return diffQuestion;
    case "findings":
      return findingsQuestion;
  }
}
