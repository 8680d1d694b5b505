// The call tree, bottom-up or top-down.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Flame } from "../api/types";
import { functionTools } from "../flame/actions";
import { treeOf } from "../flame/columns";
import { FrameTip } from "../flame/frame-tip";
import { transformed } from "../flame/transform";
import { currentSource, isFatal, useAnswer } from "../state/answers";
import { groupOptions } from "../state/describe";
import { PLAIN_LOOK, treeQuestion } from "../state/questions";
import { FRAMES, state, update } from "../state/state";
import { Segmented, Select } from "../widgets/controls";
import { Problem } from "../widgets/problem";
import { TreeTable } from "./tree-table";

export function TreeView(): JSX.Element {
  const now = state.value;
  const hasServer = currentSource().hasServer;
  const isUp = now.treeDirection === "up";
  const answer = useAnswer<Flame>(treeQuestion(hasServer ? now : { ...now, ...PLAIN_LOOK }));
  const { data, error, isStale } = answer;
  const whole = useMemo(() => data && treeOf(data), [data]);
  const tree = useMemo(
    () => (whole && !hasServer && now.hide.length > 0 ? transformed(whole, [], now.hide) : whole),
    [whole, now.hide],
  );
  return (
    <TreeTable
      nodes={tree?.nodes ?? null}
      of={answer.of}
      total={tree?.total.bytes.value ?? 0}
      isStale={isStale}
      isExact={tree?.subject.is_exact ?? true}
      isUp={isUp}
      label="Call tree"
      kind={now.frames}
      searched={now.frames}
      title={isUp ? "Allocated in, called by" : "Function"}
      empty="No sampled block is in this selection."
      problem={error && isFatal(answer) ? <Problem error={error} /> : null}
      tools={functionTools(
        hasServer,
        (node) =>
          tree && (
            <FrameTip node={node} total={tree.total} unit="bytes" isExact={tree.subject.is_exact} isBottomUp={isUp} />
          ),
      )}
      note={isUp ? "callers below each row" : "callees below each row"}
      choices={
        <>
          <Segmented
            label="Direction"
            value={now.treeDirection}
            options={[
              { value: "up", text: "Bottom-up", help: "From the allocations to their callers" },
              { value: "down", text: "Top-down", help: "From the entry point to the allocations" },
            ]}
            onChange={(treeDirection) => update({ treeDirection })}
          />
          {hasServer && (
            <Select
              label="A row is a"
              value={now.frames}
              options={groupOptions(FRAMES)}
              onChange={(frames) => update({ frames })}
            />
          )}
        </>
      }
    />
  );
}
