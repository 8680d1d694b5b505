// The dominator tree of a heap snapshot: as an icicle, and as a tree table.

import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";
import type { DominatorNode, DominatorTree } from "../api/types";
import type { NodeTools } from "../flame/actions";
import { FlameCanvas } from "../flame/canvas";
import { flameKeys } from "../flame/flame-keys";
import { useFlameSearch } from "../flame/search-field";
import { picture } from "../flame/picture";
import { bytes, countShort } from "../format";
import { useKeys } from "../keys";
import { isFatal, useAnswer } from "../state/answers";
import { canUndo, state, undo, update } from "../state/state";
import { Empty, IconButton, Segmented } from "../widgets/controls";
import { Problem } from "../widgets/problem";
import { TreeTable } from "../views/tree-table";
import { VALUE_ACTIONS, valueMenu, type Named } from "./actions";
import { drawnTree, pathOf } from "./nodes";
import { dominatorsQuestion } from "./questions";
import { ValueTip } from "./tip";

function named(tree: DominatorTree, index: number): Named {
  const { name, kind, place } = tree.nodes[index] as DominatorNode;
  return { name, kind, place, path: pathOf(tree.nodes, index) };
}

function valueTools(tree: DominatorTree): NodeTools {
  return {
    actions: VALUE_ACTIONS.map((action) => ({
      key: action.key,
      text: action.text,
      run: (_, index) => action.isPossible(named(tree, index)) && action.run(named(tree, index)),
    })),
    menu: (_, index) => valueMenu(named(tree, index)),
    tip: (_, index) => <ValueTip node={tree.nodes[index] as DominatorNode} total={tree.subject.total} />,
  };
}

const NO_TOOLS: NodeTools = { actions: [], menu: () => [], tip: () => null };

export function IcicleView(): JSX.Element {
  const now = state.value;
  const answer = useAnswer<DominatorTree>(dominatorsQuestion);
  const { data, error } = answer;
  const drawn = useMemo(
    () =>
      data &&
      picture(
        drawnTree(data),
        { unit: now.unit, order: now.order, colour: "module", kind: "function", shape: now.shape, folds: false },
        `Retained: ${now.unit === "bytes" ? bytes(data.subject.total.bytes) : `${countShort(data.subject.total.blocks)} blocks`}`,
      ),
    [data, now.unit, now.order, now.shape],
  );
  const searchBox = useRef<HTMLInputElement>(null);
  const { found, jumps, field } = useFlameSearch(drawn, now.unit, searchBox, "Search for names");
  useKeys("View", flameKeys(searchBox));
  return (
    <div class="view flame-view">
      <div class="toolbar">
        <Segmented
          label="Shape"
          value={now.shape}
          options={[
            { value: "icicle", text: "Icicle" },
            { value: "flame", text: "Flame" },
          ]}
          onChange={(shape) => update({ shape })}
        />
        <Segmented
          label="Width"
          value={now.unit}
          options={[
            { value: "bytes", text: "Bytes" },
            { value: "blocks", text: "Blocks" },
          ]}
          onChange={(unit) => update({ unit })}
        />
        <span class="muted wide-only">
          What is below a box can only be reached through it, and would be freed with it.
        </span>
        <span class="spring" />
        {field}
        <IconButton icon="back" text="Undo" hint="u" isDisabled={!canUndo()} onClick={undo} />
      </div>
      {error && isFatal(answer) ? (
        <Problem error={error} />
      ) : drawn && drawn.total.bytes.value === 0 ? (
        <Empty title="Nothing here">The snapshot has no blocks.</Empty>
      ) : (
        drawn &&
        data && (
          <div class="flame-box">
            <FlameCanvas
              picture={drawn}
              of={answer.of}
              found={found}
              jumps={jumps}
              isBottomUp={false}
              tools={valueTools(data)}
              describe="Icicle graph of retained memory"
              caption="Retained memory"
              selection=""
            />
          </div>
        )
      )}
    </div>
  );
}

export function DominatorsView(): JSX.Element {
  const answer = useAnswer<DominatorTree>(dominatorsQuestion);
  const { data, error, isStale } = answer;
  const drawn = useMemo(() => data && drawnTree(data), [data]);
  return (
    <TreeTable
      nodes={drawn?.nodes ?? null}
      of={answer.of}
      total={data?.subject.total.bytes ?? 0}
      isStale={isStale}
      isExact
      isUp={false}
      label="Dominator tree"
      title="Roots, modules, definitions, values"
      empty="The snapshot has no blocks."
      problem={error && isFatal(answer) ? <Problem error={error} /> : null}
      tools={data ? valueTools(data) : NO_TOOLS}
      note="a row retains what is below it"
    />
  );
}
