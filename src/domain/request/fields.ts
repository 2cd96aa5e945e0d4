/**
 * Part of a field that is shown:
 * - `value`: a word of the API, an id, a time or a small number
 * - `text`: without what a pattern finds
 * - `message`: text of the service
 * - `name`: path of a field
 * - `free`: merchant's object, without what a pattern or its keys give away
 * - `url`: host
 * - `object`: fields
 * - `keys`: keys, without values
 */
export type Form = 'value' | 'text' | 'message' | 'name' | 'free' | 'url' | 'object' | 'keys';

const of = (form: Form, names: string) =>
  names
    .trim()
    .split(/\s+/)
    .map((name) => [name, form] as const);

/** Any other field is redacted. */
const FIELDS = new Map<string, Form>([
  ...of('value', 'id object type status event method scheme currency country asset network'),
  ...of('value', 'amount amount_settled amount_returned amount_due amount_received disputed fee'),
  ...of('value', 'net available reserved pending owed balance_account livemode'),
  ...of('value', 'payment_id refund_id recipient_id payout_id crypto_payment_id endpoint_id'),
  ...of('value', 'crypto_settlement_id resource_id request_id deleted confirmations'),
  ...of('value', 'required_confirmations created created_at updated_at authorized_at settled_at'),
  ...of('value', 'cancelled_at completed_at received_at expires_at seen_at available_on at'),
  ...of('value', 'enabled_events disabled_reason after now to advance target state'),
  ...of('value', 'offset_seconds attempts next_attempt_at duration_ms has_more next_cursor'),
  ...of('text', 'reference reason description code dispute_id'),
  ...of('message', 'message'),
  ...of('name', 'field'),
  ...of('free', 'metadata'),
  ...of('url', 'success_url error_url redirect_url url'),
  ...of('object', 'error details failure returned deposits data deliveries log source'),
  ...of('keys', 'customer'),
]);

export function findForm(field: string): Form | undefined {
  return FIELDS.get(field);
}

export function mayHold(form: Form | undefined): boolean {
  return form === 'object' || form === 'value' || form === 'free' || form === 'keys';
}

/** Stored encrypted by this route; shown elsewhere. */
const ENCRYPTED_TEXTS = new Map<string, readonly string[]>([
  ['/v1/payout-recipients', ['reference', 'parent_payment_reference']],
]);

export function findEncryptedTexts(route: string): readonly string[] {
  return ENCRYPTED_TEXTS.get(route) ?? [];
}

/** Keys of a merchant's object whose values are not shown. */
const SENSITIVE_KEY =
  /name|mail|phone|mobile|address|street|city|town|zip|post|birth|dob|iban|bic|acc(?:oun)?t_?n|card|pan\b|cvc|cvv|expir|sort|token|secret|pass|pwd|auth|cookie|session|signature|api.?key|\bpin\b|ssn|tax|vat|licen|\bip\b|customer|recipient|payer|buyer|user|contact|gender/i;

export function isSensitiveKey(key: string): boolean {
  return SENSITIVE_KEY.test(key);
}
