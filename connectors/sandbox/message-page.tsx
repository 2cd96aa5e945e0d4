import { renderPage } from '../../src/pages/layout';

export const BANNER = 'Sandbox bank: no money moves';
export const FOOTER = 'A pretend bank for testing payments.';

export interface Message {
  title: string;
  text: string;
  /** URL of the way back: the session's return_url. */
  back: string | null;
  stylesheet: string;
}

export function messagePage({ title, text, back, stylesheet }: Message): string {
  return renderPage({
    title: `${title} · Sandbox bank`,
    stylesheet,
    banner: BANNER,
    footer: FOOTER,
    children: (
      <>
        <div class="stack">
          <h1>{title}</h1>
          <p class="muted">{text}</p>
        </div>
        {back !== null && (
          <a class="button" href={back}>
            Back to the shop
          </a>
        )}
      </>
    ),
  });
}
