// The amount, and the runs and sites that all views of a dataset are about.

import type { JSX } from "preact";
import { AMOUNTS, state, update } from "../state/state";
import { Select } from "../widgets/controls";
import { tipOn } from "../widgets/tip";
import { shownValue } from "./rows";
import type { VersionRuns } from "./types";

export const AMOUNT_NAMES: Record<(typeof AMOUNTS)[number], string> = {
  allocated: "allocated",
  "live-at-peak": "live at the peak",
  "live-at-end": "live at the end",
  promoted: "promoted",
  blocks: "allocated blocks",
};

export function FleetFilter({ runs }: { runs: readonly VersionRuns[] }): JSX.Element {
  const now = state.value;
  const services = [...new Set(runs.map((one) => one.service))].sort();
  return (
    <section class="panel fleet-filter" aria-label="Runs and sites">
      <Select
        label="Memory"
        value={now.amount}
        options={AMOUNTS.map((value) => ({ value, text: AMOUNT_NAMES[value] }))}
        onChange={(amount) => update({ amount })}
      />
      <Select
        label="Service"
        value={now.service}
        options={[
          { value: "", text: "all" },
          ...services.filter((value) => value !== "").map((value) => ({ value, text: shownValue(value) })),
        ]}
        onChange={(service) => update({ service })}
      />
      <Field
        label="Sites"
        value={now.where}
        example='module = "Parser*"'
        help="Count only sites that match a query: site, function, file, module, line and heap."
        onChange={(where) => update({ where })}
      />
      <Field
        label="Runs"
        value={now.runs}
        example="day >= '2026-11-01' and not damaged"
        help="Take only runs for which a condition in SQL holds, on the columns of the table runs."
        onChange={(runs) => update({ runs })}
      />
    </section>
  );
}

/** A text that takes effect with Enter, or when it is left: each change is a question to all runs. */
function Field(props: {
  label: string;
  value: string;
  example: string;
  help: string;
  onChange: (text: string) => void;
}): JSX.Element {
  return (
    <label class="fleet-field" {...tipOn(props.help)}>
      <span>{props.label}</span>
      <input
        type="search"
        placeholder={props.example}
        value={props.value}
        spellcheck={false}
        onChange={(event) => props.onChange(event.currentTarget.value)}
      />
    </label>
  );
}
