// Starts the viewer with the document of this server. The key that it asks for stays in this page.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#viewer",
  deepLinking: true,
  displayOperationId: true,
  docExpansion: "list",
  persistAuthorization: false,
  // Without this the viewer would ask another host whether the document is valid.
  validatorUrl: null,
});
