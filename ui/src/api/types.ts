// The reports as docs/json.md describes them. Times are seconds, memory is in bytes.

export interface Estimate {
  value: number;
  error: number;
  low: number;
  high: number;
}

export interface Figures {
  bytes: Estimate;
  blocks: Estimate;
  samples: number;
}

export interface Label {
  name: string;
  raw_name?: string;
  place?: string;
  module?: string | null;
  file?: string | null;
}

export interface Subject {
  program: string;
  duration: number;
  estimator: string;
  is_exact: boolean;
  word_bytes: number;
  bytes_per_sample: number;
  sampled_blocks: number;
  lost_allocations: number;
  flaws: number;
}

export interface Status {
  state: "loading" | "ready" | "failed";
  version: string;
  trace: string;
  against: string | null;
  against_path: string | null;
  read: number;
  size: number | null;
  error: string | null;
  path: string;
}

export interface Info {
  file: string;
  file_size: number | null;
  trace: {
    sample_rate: number;
    word_size: number;
    executable_name: string;
    host_name: string;
    ocaml_runtime_params: string;
    pid: number;
    start_time_us: number;
    context: string | null;
  };
  gc_params: { params: { key: string; value: string; meaning: string; is_default: boolean }[] };
  format_version: number;
  bytes_per_sample: number;
  is_exact: boolean;
  duration: number;
  trace_bytes: number;
  packets: number;
  domains: number[];
  events: {
    minor: number;
    major: number;
    external: number;
    promotions: number;
    collections: number;
    unmatched: number;
  };
  samples: { total: number };
  damage: {
    count: number;
    lost_bytes: number;
    lost_allocations: number;
    uncertain_stacks: number;
    uncertain_names: number;
    flaws: { offset: number; kind: unknown }[];
  };
}

export interface Summary {
  subject: Subject;
  allocated: Figures;
  promoted: Figures;
  collected: Figures;
  live_at_peak: Figures;
  live_at_end: Figures;
  peak_time: number;
  allocation_rate: Estimate | null;
  promotion_rate: Estimate | null;
}

export interface Quantiles {
  p50: number | null;
  p90: number | null;
  p99: number | null;
}

export interface Hotspot {
  label: Label;
  allocated: Figures;
  live_at_peak: Figures;
  live_at_end: Figures;
  inclusive: Figures | null;
  mean_size: number;
  lifetime: Quantiles;
  promoted_percent: number | null;
  growth: number[];
  is_noise: boolean;
}

export interface HotspotTotals {
  allocated: Figures;
  live_at_peak: Figures;
  live_at_end: Figures;
}

export interface Hotspots {
  subject: Subject;
  by: string;
  peak_time: number;
  total: HotspotTotals;
  hidden: HotspotTotals;
  hidden_rows: number;
  rows: Hotspot[];
}

/** A tree as the API gives it: columns, because objects of a hundred thousand nodes take long to send and to read. */
export interface Flame extends Omit<Tree, "nodes" | "callers"> {
  labels: Label[];
  nodes: NodeColumns;
  callers: NodeColumns;
}

export interface NodeColumns {
  /** The place of the parent, or -1. */
  parent: number[];
  /** The place in `labels`; -1 for "other". */
  label: number[];
  /** 0 call, 1 site, 2 other. */
  kind: number[];
  others: number[];
  bytes: number[];
  error: number[];
  own: number[];
  own_error: number[];
  blocks: number[];
  blocks_error?: number[];
  samples: number[];
  major: number[];
  external: number[];
  promoted: number[];
  lifetime: number[];
  at_half: number[];
  at_end: number[];
}

export interface NodeDetails {
  /** Seconds on average; those alive at the end count as long as they were seen. */
  lifetime: number | null;
  /** Bytes that were promoted. */
  promoted: number;
  /** Bytes by where they were at any time: only on the minor heap, on the major heap, outside. */
  heap: { minor: number; major: number; external: number };
  live_at_half: number;
  live_at_end: number;
}

/** A node of a tree. Of `own`, only the bytes are known. */
export interface TreeNode {
  parent: number | null;
  depth: number;
  label: Label;
  kind: "call" | "site" | "other";
  others: number;
  total: Figures;
  own: Estimate;
  details: NodeDetails;
}

export interface Tree {
  subject: Subject;
  by: string;
  direction: "top_down" | "bottom_up";
  total: Figures;
  focus: string[];
  focus_total: Figures | null;
  nodes: TreeNode[];
  callers: TreeNode[];
}

export interface Line {
  values: number[];
  low: number[];
  high: number[];
}

export interface GroupLine extends Line {
  label: Label;
  is_other: boolean;
}

export interface Series {
  subject: Subject;
  measure: string;
  times: number[];
  total: Line;
  error: number[];
  groups: GroupLine[];
  callers_of?: string[];
}

export interface Bin {
  low: number;
  high: number;
  blocks: number;
  bytes: number;
  sampled: number;
}

export interface Stats {
  subject: Subject;
  total: Figures;
  sizes: {
    mean: number | null;
    sd: number | null;
    quantiles: Quantiles;
    max: number | null;
    large_limit: number;
    large_blocks_percent: number | null;
    large_bytes_percent: number | null;
    log: Bin[];
  };
  lifetimes: {
    alive: Figures;
    mean: number | null;
    max: number | null;
    seconds: Quantiles;
    bytes: Quantiles;
    log: Bin[];
    survival: { age: number; alive: number }[];
  };
}

export interface Heatmap {
  subject: Subject;
  times: number[];
  ages: number[];
  bytes: number[][];
  blocks: number[][];
  alive_bytes: number[];
  alive_blocks: number[];
}

export interface Leak {
  label: Label;
  retained: Figures;
  growth: Estimate;
  growth_per_second: number;
  shape: "linear" | "bounded" | "burst" | "periodic" | "irregular" | "unclear";
  live: number[];
}

export interface Leaks {
  subject: Subject;
  by: string;
  tail: number;
  min_age: number;
  retained: Figures;
  growth: Estimate;
  rows: Leak[];
  hidden_rows: number;
  steady_groups: number;
  steady: Figures;
}

export interface Change {
  before: Figures;
  after: Figures;
  bytes: Estimate;
  blocks: Estimate;
  percent: number | null;
  p_value: number;
  is_real: boolean;
}

export interface Diff {
  before_name: string;
  after_name: string;
  by: string;
  scale: number;
  total: Change;
  rows: (Change & { label: Label })[];
  hidden_rows: number;
  real_changes: number;
}

export interface Completion {
  kind: string;
  names: { name: string; bytes: number }[];
}

export interface ApiErrorBody {
  code: string;
  message: string;
  parameter: string | null;
  value: string | null;
  span: [number, number] | null;
  expected: string | null;
}
