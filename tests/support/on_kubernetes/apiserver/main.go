// A real Kubernetes API server for custom resources alone (apiextensions-apiserver), with etcd in the same process. Its
// users are those of a file of tokens; each may do what the rules of a Role say.
//
//	apiserver PORT FOLDER RULES.json     RULES.json: {token: [PolicyRule, ...]}
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"go.etcd.io/etcd/server/v3/embed"
	"go.opentelemetry.io/otel/trace/noop"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	generatedopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-helpers/auth/rbac/validation"
)

type rules map[string][]rbacv1.PolicyRule

// Authorize compares a request with the user's rules as Kubernetes compares rules (its own code).
func (r rules) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == user.APIServerUser {
		return authorizer.DecisionAllow, "", nil
	}
	if !a.IsResourceRequest() {
		return authorizer.DecisionNoOpinion, "", nil
	}
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	asked := rbacv1.PolicyRule{Verbs: []string{a.GetVerb()}, APIGroups: []string{a.GetAPIGroup()}, Resources: []string{resource}}
	if a.GetName() != "" {
		asked.ResourceNames = []string{a.GetName()}
	}
	if covered, _ := validation.Covers(r[a.GetUser().GetName()], []rbacv1.PolicyRule{asked}); covered {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "no rule of the Role covers it", nil
}

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(port, folder, rulesFile string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var allowed rules
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &allowed); err != nil {
		return err
	}
	etcd, err := startEtcd(folder)
	if err != nil {
		return err
	}
	defer etcd.Close()
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	config, err := configured(number, folder, etcd.Clients[0].Addr().String(), allowed)
	if err != nil {
		return err
	}
	server, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return err
	}
	return server.GenericAPIServer.PrepareRun().RunWithContext(ctx)
}

func startEtcd(folder string) (*embed.Etcd, error) {
	config := embed.NewConfig()
	config.Dir = filepath.Join(folder, "etcd")
	config.LogLevel = "error"
	free := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	config.ListenClientUrls, config.ListenPeerUrls = []url.URL{free}, []url.URL{free}
	etcd, err := embed.StartEtcd(config)
	if err == nil {
		<-etcd.Server.ReadyNotify()
	}
	return etcd, err
}

func configured(port int, folder, etcd string, allowed rules) (*apiserver.Config, error) {
	o := options.NewCustomResourceDefinitionsServerOptions(os.Stdout, os.Stderr)
	r := o.RecommendedOptions
	r.Authentication, r.Authorization, r.CoreAPI, r.Admission = nil, nil, nil, nil
	r.Features.EnablePriorityAndFairness = false
	r.Etcd.StorageConfig.Transport.ServerList = []string{"http://" + etcd}
	r.SecureServing.BindAddress, r.SecureServing.BindPort = net.ParseIP("127.0.0.1"), port
	r.SecureServing.ServerCert.CertDirectory = folder
	if err := r.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.ParseIP("127.0.0.1")}); err != nil {
		return nil, err
	}
	if err := o.Complete(); err != nil {
		return nil, err
	}
	server := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	if err := o.ServerRunOptions.ApplyTo(&server.Config); err != nil {
		return nil, err
	}
	if err := r.ApplyTo(server); err != nil {
		return nil, err
	}
	if err := o.APIEnablement.ApplyTo(&server.Config, apiserver.DefaultAPIResourceConfigSource(), apiserver.Scheme); err != nil {
		return nil, err
	}
	users := map[string]*user.DefaultInfo{}
	for token := range allowed {
		users[token] = &user.DefaultInfo{Name: token}
	}
	server.Authentication.Authenticator = union.New(bearertoken.New(tokenfile.New(users)))
	server.Authorization.Authorizer = authorizer.AuthorizerFunc(allowed.Authorize)
	definitions := generatedopenapi.GetOpenAPIDefinitions
	names := openapi.NewDefinitionNamer(apiserver.Scheme, scheme.Scheme)
	server.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, names)
	return &apiserver.Config{
		GenericConfig: server,
		ExtraConfig: apiserver.ExtraConfig{
			CRDRESTOptionsGetter: options.NewCRDRESTOptionsGetter(*r.Etcd, server.ResourceTransformers, server.StorageObjectCountTracker),
			ServiceResolver:      webhook.NewDefaultServiceResolver(),
			AuthResolverWrapper:  webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil, server.LoopbackClientConfig, noop.NewTracerProvider()),
		},
	}, nil
}
