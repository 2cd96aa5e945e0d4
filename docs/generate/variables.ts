import type { Variable } from '../../stack/usage';
import { code, table } from './markdown';

export function variableTable(variables: readonly Variable[], head = 'Variable'): string {
  const rows = variables.map(({ name, usual, alone, description }) => [
    code(name),
    alone === usual ? formatValue(usual) : `${formatValue(usual)}; alone ${formatValue(alone)}`,
    description,
  ]);
  return table([head, 'Default', 'What it is'], rows);
}

/** Formats a value as code, but not a word about it. */
function formatValue(text: string): string {
  return text.includes(' ') || text === 'none' || text === 'required' ? text : code(text);
}
