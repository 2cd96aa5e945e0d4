import { Field } from './fields';
import { Note, PageHead, PostForm } from './parts';
import type { Confirmation, Viewer } from './route';

/** Fields that the page sets itself, or must not repeat. */
const OWN_FIELDS = new Set(['csrf', 'confirmed', 'password', 'new_password']);

interface ConfirmPageProps {
  viewer: Viewer;
  confirmation: Confirmation;
  title: string;
  action: string;
  back: string;
  form: URLSearchParams;
  fault?: string | undefined;
}

/**
 * Asks for confirmation. It repeats the fields of the form, so that it works without JavaScript.
 */
export function ConfirmPage({
  viewer,
  confirmation,
  title,
  action,
  back,
  form,
  fault,
}: ConfirmPageProps) {
  const { question, button, password } = confirmation;
  const hiddenFields = [...form].filter(([name]) => !OWN_FIELDS.has(name));
  return (
    <>
      <PageHead title={title} />
      {fault !== undefined && <Note tone="bad">{fault}</Note>}
      <section class="panel narrow">
        <p>{typeof question === 'string' ? question : question(form)}</p>
        <PostForm viewer={viewer} action={action} button={button} hidden={{ confirmed: 'yes' }}>
          {hiddenFields.map(([name, value]) => (
            <input key={`${name}=${value}`} type="hidden" name={name} value={value} />
          ))}
          {password && (
            <Field
              label="Password"
              name="password"
              type="password"
              autocomplete="current-password"
              required
              autofocus
            />
          )}
        </PostForm>
        <a href={back}>Back without doing it</a>
      </section>
    </>
  );
}
