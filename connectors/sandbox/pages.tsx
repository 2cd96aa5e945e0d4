import type { Context } from 'koa';
import type { ComponentChildren } from 'preact';
import getRawBody from 'raw-body';
import { renderPage } from '../../src/pages/layout';

const FORM_BYTES_MAX = 4_096;

type Response = Pick<Context, 'status' | 'type' | 'body'>;

export async function readForm(ctx: Pick<Context, 'is' | 'req'>): Promise<URLSearchParams> {
  if (ctx.is('application/x-www-form-urlencoded') === false) return new URLSearchParams();
  const body = await getRawBody(ctx.req, { limit: FORM_BYTES_MAX, encoding: 'utf8' });
  return new URLSearchParams(body);
}

export function isTooLarge(error: unknown): boolean {
  return error instanceof Error && 'type' in error && error.type === 'entity.too.large';
}

interface BankPage {
  title: string;
  stylesheet: string;
  children: ComponentChildren;
}

export function showPage(ctx: Response, status: number, page: BankPage): void {
  ctx.status = status;
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = renderPage({
    ...page,
    banner: 'Sandbox bank: no money moves',
    footer: 'A pretend bank for testing payments.',
  });
}

export interface Message {
  status: number;
  title: string;
  text: string;
}

/** @param back the session's return_url */
export function showMessage(
  ctx: Response,
  { status, title, text }: Message,
  { stylesheet, back }: { stylesheet: string; back?: string },
): void {
  const children = (
    <>
      <div class="stack">
        <h1>{title}</h1>
        <p class="muted">{text}</p>
      </div>
      {back !== undefined && (
        <a class="button" href={back}>
          Back to the shop
        </a>
      )}
    </>
  );
  showPage(ctx, status, { title: `${title} · Sandbox bank`, stylesheet, children });
}
