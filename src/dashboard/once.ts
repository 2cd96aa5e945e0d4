import { randomUUID } from 'node:crypto';
import type { Refusal } from '../domain/errors';

/** Keys of acts from the dashboard, each made once in its form. */
export const FORM_KEY = /^dashboard-[0-9a-f-]{36}$/;

/** Makes the idempotency key of a form, so that a form that is sent twice acts once. */
export function newFormKey(): string {
  return `dashboard-${randomUUID()}`;
}

/** Whether an act may have been done although it was refused. */
export function isUnknown({ code }: Refusal): boolean {
  return code === 'temporarily_unavailable' || code === 'idempotency_request_in_progress';
}
