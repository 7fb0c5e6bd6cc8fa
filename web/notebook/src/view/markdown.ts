// Markdown to HTML. Raw HTML stays text, links go only to the web or within the page, and images
// that a text names are not fetched: a notebook from elsewhere must not be able to call home.
import MarkdownIt from "markdown-it";

const safeLink = /^(https?:|mailto:|#)/i;

export function makeRenderer(): (text: string) => string {
  const markdown = new MarkdownIt({ html: false, linkify: false, typographer: true });
  markdown.validateLink = (url) => safeLink.test(url.trim());
  markdown.disable("image");
  const plain = markdown.renderer.rules.link_open;
  markdown.renderer.rules.link_open = (tokens, i, options, env, self) => {
    tokens[i]?.attrSet("rel", "noopener noreferrer");
    tokens[i]?.attrSet("target", "_blank");
    return plain ? plain(tokens, i, options, env, self) : self.renderToken(tokens, i, options);
  };
  return (text) => markdown.render(text);
}
