// Names as patterns of the query language and of options: `*` is any text and `?` any character, `/.../` is a regular
// expression.

/** A pattern for an option such as `--focus` that matches exactly this name. */
export function patternOf(name: string): string {
  // A name that starts like a regular expression must be escaped.
  return name.startsWith("/") ? `?${name.slice(1)}` : name;
}

/** A pattern for exactly this name in a query, in quotes. */
export function quoted(name: string): string {
  return `"${name.replaceAll(/["\\*?]/g, "\\$&")}"`;
}

/** The pattern for names that a search text matches: in any case, anywhere in the name. */
export function searchPattern(text: string): string {
  const wanted = text.trim();
  const regex = /^\/(.+?)\/?$/s.exec(wanted);
  return `/${regex ? regex[1] : wanted.replaceAll(/[\\^$.|?*+()[\]{}]/g, "\\$&")}/i`;
}

/** A pattern of an option as the query language has it. */
export function inQuery(pattern: string): string {
  const regex = /^\/(.*)(\/i?)$/s.exec(pattern);
  if (regex) return `/${(regex[1] as string).replaceAll(/\\.|\//gs, (one) => (one === "/" ? "\\/" : one))}${regex[2]}`;
  // Any backslash that is not before one of these stands for itself.
  return `"${pattern.replaceAll(/\\[*?\\]|["\\]/g, (one) => (one.length === 1 ? `\\${one}` : one))}"`;
}

/** Adds a clause to a query, or removes it. */
export function withClause(where: string, clause: string): string {
  const text = where.trim();
  if (text === "") return clause;
  return `${hasOr(text) ? `(${text})` : text} and ${clause}`;
}

/** The clauses of a conjunction; the query itself if it is not one. */
export function clausesOf(where: string): string[] {
  const text = where.trim();
  if (text === "" || hasOr(text)) return text === "" ? [] : [text];
  const clauses: string[] = [];
  let start = 0;
  for (const { word, at, depth } of topWords(text)) {
    if (depth !== 0 || word.toLowerCase() !== "and") continue;
    clauses.push(text.slice(start, at).trim());
    start = at + word.length;
  }
  return [...clauses, text.slice(start).trim()];
}

/** True if `or` occurs outside of parentheses and quotes, so that `and` would bind to a part only. */
function hasOr(text: string): boolean {
  return topWords(text).some(({ word, depth }) => depth === 0 && word.toLowerCase() === "or");
}

/** The tokens of a query, with their depth of parentheses; quoted text is one token. */
function topWords(text: string): { word: string; at: number; depth: number }[] {
  let depth = 0;
  return [...text.matchAll(/"(?:\\.|[^"\\])*"?|\/[^/]*\/?i?|[()]|[^\s()"/]+/g)].map(({ 0: word, index: at }) => {
    if (word === ")") depth -= 1;
    const found = { word, at, depth };
    if (word === "(") depth += 1;
    return found;
  });
}
