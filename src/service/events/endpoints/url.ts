import { Refusal } from '../../../domain/errors';
import { checkWebhookUrl } from '../../../webhooks/url';
import type { Owner } from '../../deps';

export interface UrlRules {
  /** Sandbox endpoints on this machine; live ones never. */
  allowPrivate: boolean;
  isDenied: (address: string) => boolean;
}

/** @returns the URL to store, or the reason for the merchant */
export function checkEndpointUrl({ allowPrivate, isDenied }: UrlRules, owner: Owner, url: string) {
  return checkWebhookUrl(url, { allowPrivate: allowPrivate && !owner.livemode, isDenied });
}

/** @throws Refusal 400 with a detail for `url` */
export async function admitEndpointUrl(
  rules: UrlRules,
  owner: Owner,
  url: string,
): Promise<string> {
  const check = await checkEndpointUrl(rules, owner, url);
  if (check.ok) return check.url;
  const { message } = check;
  const details = [{ code: 'invalid', field: 'url', message }];
  throw new Refusal('invalid_request', `url: ${message}`, { details });
}
