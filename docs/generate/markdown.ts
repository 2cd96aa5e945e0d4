/** Escapes a `|` inside a cell. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(escapePipes).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

function escapePipes(cell: string): string {
  return cell.replaceAll('|', '\\|');
}

export function code(text: string): string {
  return `\`${text}\``;
}

export function codes(names: readonly string[]): string {
  return names.map(code).join(', ');
}

export function list(items: readonly string[]): string {
  return items.map((item) => `- ${item}`).join('\n');
}
