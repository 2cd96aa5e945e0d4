import { isJsonObject, type JsonValue, NumberLiteral, RawJson } from '../../base/json';
import { type Form, findForm, mayHold } from './fields';
import { isHidden, isPlainKey } from './values';
import { isOwnWord } from './words';

const HIDDEN_MAX = 50;
const HIDDEN_LENGTH = { min: 3, max: 200 };

/** Other texts may repeat the values of hidden fields. */
export function collectHidden(value: JsonValue, form: Form | undefined, hidden: Set<string>): void {
  if (hidden.size >= HIDDEN_MAX || value instanceof RawJson) return;
  if (typeof value === 'string' || typeof value === 'number' || value instanceof NumberLiteral) {
    const text = (value instanceof NumberLiteral ? value.text : String(value)).trim();
    const isLong = text.length >= HIDDEN_LENGTH.min && text.length <= HIDDEN_LENGTH.max;
    if (isLong && !isOwnWord(text) && isHidden(value, form)) hidden.add(text);
    return;
  }
  const inner = mayHold(form) ? form : undefined;
  if (Array.isArray(value)) {
    for (const item of value) collectHidden(item, inner, hidden);
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [key, item] of Object.entries(value)) {
    if (!isPlainKey(key) && key.length >= HIDDEN_LENGTH.min) {
      hidden.add(key.slice(0, HIDDEN_LENGTH.max));
    }
    collectHidden(item, inner === 'object' ? findForm(key) : inner, hidden);
  }
}
