import type { JSX } from "preact";

/** A sparkline, from zero to its maximum. */
export function Spark(props: {
  values: readonly number[];
  width?: number;
  height?: number;
  label?: string;
}): JSX.Element {
  const { values, width = 96, height = 20 } = props;
  const largest = Math.max(...values, 0);
  if (largest === 0 || values.length < 2) return <svg class="spark" width={width} height={height} aria-hidden="true" />;
  const x = (i: number) => (i / (values.length - 1)) * width;
  const y = (value: number) => height - 1 - (value / largest) * (height - 3);
  const line = values.map((value, i) => `${i === 0 ? "M" : "L"}${x(i).toFixed(1)} ${y(value).toFixed(1)}`).join("");
  return (
    <svg
      class="spark"
      width={width}
      height={height}
      viewBox={`0 0 ${width} ${height}`}
      role="img"
      aria-label={props.label ?? "live over time"}
    >
      <path class="spark-area" d={`${line}L${width} ${height}L0 ${height}Z`} />
      <path class="spark-line" d={line} />
    </svg>
  );
}
