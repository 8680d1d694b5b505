// Reports about datasets: what `heapline fleet ... --json` prints, see docs/fleet.md.

/** Properties and their values. */
export type Group = Record<string, string>;

export interface Mean {
  runs: number;
  mean: number;
  standard_error: number;
  /** Half of the 95 % interval. */
  error: number;
}

export interface Change {
  change: number;
  error: number;
  /** Null if there was nothing before. */
  percent: number | null;
  /** Null if run-to-run variation is unknown. */
  p: number | null;
  q: number | null;
  is_significant: boolean;
}

export type Unit = "bytes" | "blocks";

export interface TopRow extends Mean {
  group: Group;
  percent: number;
}

export interface Top {
  unit: Unit;
  runs: number;
  rows: TopRow[];
  hidden_rows: number;
}

export interface ChangeRow extends Change {
  group: Group;
  before_name: string;
  after_name: string;
  before: Mean;
  after: Mean;
}

interface Changes {
  unit: Unit;
  tested: number;
  rows: ChangeRow[];
  hidden_rows: number;
}

export interface FleetDiff extends Changes {
  before: string;
  after: string;
  before_runs: number;
  after_runs: number;
  significant: number;
}

export interface Regressions extends Changes {
  services: { service: string; before: string; before_runs: number; after: string; after_runs: number }[];
  /** Services without two versions. */
  not_compared: string[];
}

export interface Point extends Mean {
  name: string;
  /** The change from the point before; null for the first. */
  step: Change | null;
}

export interface TrendSeries {
  group: Group;
  points: Point[];
}

export interface Trend {
  unit: Unit;
  over: string;
  series: TrendSeries[];
  tested: number;
  significant: number;
}

/** The runs of a version of a service, in the order of the first of them. */
export interface VersionRuns {
  service: string;
  version: string;
  runs: number;
  first_day: string;
  last_day: string;
}
