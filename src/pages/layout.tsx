import type { ComponentChildren } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { Icon } from './icons';

export interface PageShell {
  title: string;
  stylesheet: string;
  script?: string;
  /** Seconds after which a browser without JavaScript reloads. */
  reloadAfter?: number;
  /** Stored URL to which the browser redirects at once. */
  goTo?: string;
  banner?: string;
  footer: string;
  children: ComponentChildren;
}

/** Renders an HTML document; everything in it is escaped. */
export function renderPage(shell: PageShell): string {
  return `<!doctype html>${renderToString(<Page {...shell} />)}`;
}

function Page({ title, stylesheet, script, banner, footer, children, ...timing }: PageShell) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="robots" content="noindex, nofollow" />
        <meta name="color-scheme" content="light dark" />
        <title>{title}</title>
        <link rel="icon" href="data:," />
        <link rel="stylesheet" href={stylesheet} />
        <Timing {...timing} />
        {script !== undefined && <script src={script} defer />}
      </head>
      <body>
        {banner !== undefined && (
          <div class="banner" role="note">
            {banner}
          </div>
        )}
        <div class="sheet">
          <main>{children}</main>
          <footer>
            <Icon name="lock" size={16} />
            <span>{footer}</span>
          </footer>
        </div>
      </body>
    </html>
  );
}

function Timing({ reloadAfter, goTo }: Pick<PageShell, 'reloadAfter' | 'goTo'>) {
  if (goTo !== undefined) return <meta http-equiv="refresh" content={`0;url=${goTo}`} />;
  if (reloadAfter === undefined) return null;
  return (
    <noscript>
      <meta http-equiv="refresh" content={String(reloadAfter)} />
    </noscript>
  );
}

export function Monogram({ name }: { name: string }) {
  return (
    <div class="shop">
      <span class="mark" aria-hidden="true">
        {[...name.trim()][0]?.toUpperCase() ?? '·'}
      </span>
      <span>{name}</span>
    </div>
  );
}

export function Detail({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
