"""How the panels look: the notebook's own colours, in light and dark themes."""

STYLE = """<style>
.sampling-lab {
  gap: 8px; max-width: 1100px; padding: 4px 2px;
  color: var(--jp-ui-font-color1, inherit);
}
.sampling-lab .widget-html, .sampling-lab .widget-html-content {
  height: auto; line-height: 1.45; margin: 0;
}
.sampling-lab-card { font-weight: 600; }
.sampling-lab-middle { gap: 20px; flex-wrap: wrap; align-items: flex-start; }
.sampling-lab-left { flex: 1 1 300px; min-width: 280px; max-width: 380px; gap: 4px; }
.sampling-lab-right { flex: 3 1 480px; min-width: 320px; max-width: 660px; }
.sampling-lab-controls { gap: 2px; }
.sampling-lab-idle { opacity: 0.45; }
.sampling-lab-summary, .sampling-lab-hint {
  font-size: 13px; color: var(--jp-ui-font-color2, inherit);
}
.sampling-lab-wide .sampling-lab-right { min-height: 600px; }
.sampling-lab-tabs .jupyter-button, .sampling-lab-mode .jupyter-button {
  min-width: 0; padding: 0 11px;
}
.sampling-lab-title { font-size: 14px; margin-top: 4px; }
.sampling-lab-caption {
  font-size: 14px; font-variant-numeric: tabular-nums; font-weight: 600;
}
.sampling-lab-picture { background: white; border-radius: 6px; margin: 0; }
[data-jp-theme-light="false"] .sampling-lab-picture {
  filter: invert(0.9) hue-rotate(180deg) saturate(1.25) brightness(1.15);
}
[data-jp-theme-light="false"] .sampling-lab {
  --jp-widgets-dropdown-arrow: url("data:image/svg+xml,\\
%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 18 18'%3E\\
%3Cpath d='M5 7l4 4 4-4' fill='none' stroke='%23ddd' stroke-width='1.7'/%3E\\
%3C/svg%3E");
}
.sampling-lab-stale { opacity: 0.3; }
.sampling-lab-buttons { gap: 4px; flex-wrap: wrap; }
.sampling-lab-buttons .jupyter-button { width: auto; min-width: 92px; }
.sampling-lab-left .sampling-lab-buttons .jupyter-button { flex: 1 1 40%; }
.sampling-lab-text {
  border: 1px solid var(--jp-border-color1, #ccc); border-radius: 6px;
  padding: 8px 10px;
}
.sampling-lab-text table { margin-top: 6px; border-spacing: 0; }
.sampling-lab-text th, .sampling-lab-text td {
  text-align: right; padding: 1px 18px 1px 0; font-variant-numeric: tabular-nums;
}
.sampling-lab-text th:first-child, .sampling-lab-text td:first-child {
  text-align: left;
}
.sampling-lab-why { font-size: 14px; }
.sampling-lab-code textarea {
  font-family: var(--jp-code-font-family, monospace); font-size: 13px; white-space: pre;
}
.sampling-lab-card progress { vertical-align: middle; width: 180px; }
.sampling-lab-upload.jupyter-button { font-size: 0; }
.sampling-lab-upload.jupyter-button i { font-size: 13px; }
.sampling-lab-upload.jupyter-button::after { content: "Load"; font-size: 13px; }
.sampling-lab-status {
  font-size: 13px; min-height: 20px; color: var(--jp-ui-font-color2, inherit);
  font-variant-numeric: tabular-nums;
}
.sampling-lab-status [role="alert"] { color: #c62828; font-weight: 600; }
[data-jp-theme-light="false"] .sampling-lab-status [role="alert"] { color: #ff8a80; }
</style>"""
